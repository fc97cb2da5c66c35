/**
 * One identifier at one key: a plain key for a mutex, members of a sorted set for permits. Asks all
 * servers, and counts what a majority did.
 *
 * The permits of redis-semaphore: a sorted set of members, whose score is the time of the last
 * refresh in milliseconds. A member whose score is older than `lockTimeout` counts as gone.
 *
 * redis-semaphore takes the time of the client; these scripts take the time of the server. So
 * clients of this package agree about the time, whatever their own clocks say. All users of a
 * semaphore must have the same `lockTimeout`: a member does not tell its own.
 */

import {
  ALREADY_TAKEN,
  EXTEND,
  GIVE,
  type Script,
  scriptOf,
  TAKE,
} from "../../stores/redis-client/plain-keys.js";
import { type Answers, ClientQuorum, type Question } from "../client-quorum.js";
import type { ScriptClient } from "../script-client.js";

const BEGIN = `
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local key, timeout, members = KEYS[1], tonumber(ARGV[1]), { unpack(ARGV, 3) }
`;

const COUNT_OWN = `
local own = 0
for _, member in ipairs(members) do
  if redis.call('zscore', key, member) then own = own + 1 end
end
`;

const EVICT = `
redis.call('zremrangebyscore', key, '-inf', now - timeout)
`;

/** A shorter lockTimeout of this user must not end the members of others. */
const ADD = `
for _, member in ipairs(members) do redis.call('zadd', key, now, member) end
if redis.call('pttl', key) < timeout then redis.call('pexpire', key, timeout) end
`;

/**
 * lockTimeout limit members: takes a permit for every member, or none. The answer is 1 or 0, and -1
 * where all members are there already.
 */
const TAKE_PERMITS: Script = scriptOf(`${BEGIN}${EVICT}${COUNT_OWN}
if own == #members then return -1 end
if redis.call('zcard', key) - own + #members > tonumber(ARGV[2]) then return 0 end
${ADD}
return 1
`);

/**
 * lockTimeout limit members: refreshes the members, if all of them are there. Members are evicted
 * after that: the permit may have been taken with a longer lockTimeout.
 */
const REFRESH_PERMITS: Script = scriptOf(`${BEGIN}${COUNT_OWN}
if own < #members then return 0 end
${ADD}${EVICT}
return 1
`);

/** lockTimeout limit members: removes the members. The answer is the number that was there. */
const GIVE_PERMITS: Script = scriptOf(`
return redis.call('zrem', KEYS[1], unpack(ARGV, 3))
`);

/** The part that differs between a mutex and a semaphore. */
export interface Layout {
  readonly key: string;
  readonly take: Script;
  readonly refresh: Script;
  readonly give: Script;
  /** The arguments of all three scripts; `isExact` is for a refresh that may shorten the time. */
  args(identifier: string, lockTimeout: number, isExact: boolean): readonly string[];
}

export function mutexLayout(key: string): Layout {
  return {
    key: `mutex:${key}`,
    take: TAKE,
    refresh: EXTEND,
    give: GIVE,
    args: (identifier, lockTimeout, isExact) => [identifier, `${lockTimeout}`, isExact ? "1" : "0"],
  };
}

/** `permits` null: one permit, whose member is the identifier itself. */
export function permitLayout(key: string, limit: number, permits: number | null): Layout {
  const membersOf = (identifier: string): string[] =>
    permits === null
      ? [identifier]
      : Array.from({ length: permits }, (_, at) => `${identifier}_${at}`);
  return {
    key: `semaphore:${key}`,
    take: TAKE_PERMITS,
    refresh: REFRESH_PERMITS,
    give: GIVE_PERMITS,
    args: (identifier, lockTimeout) => [`${lockTimeout}`, `${limit}`, ...membersOf(identifier)],
  };
}

const REFUSED = new Error("The server refused.");

export class Holding {
  readonly layout: Layout;
  readonly #quorum: ClientQuorum<ScriptClient>;
  readonly #lockTimeout: number;
  /** The value of the requests from now on. */
  identifier: string;

  constructor(
    clients: readonly ScriptClient[],
    layout: Layout,
    identifier: string,
    lockTimeout: number,
  ) {
    this.layout = layout;
    this.#quorum = new ClientQuorum(clients);
    this.identifier = identifier;
    this.#lockTimeout = lockTimeout;
  }

  get size(): number {
    return this.#quorum.clients.size;
  }

  /** `isMine`: what this identifier has is held by this process. */
  take(limitMs: number, isMine: boolean): Promise<Answers<ScriptClient>> {
    return this.#ask(this.layout.take, limitMs, (answer, _client, isResent) => {
      if (answer === ALREADY_TAKEN) return isMine || isResent ? null : REFUSED;
      return answer > 0 ? null : REFUSED;
    });
  }

  /** `isExact`: the time that is left may become shorter. */
  refresh(limitMs: number, isExact: boolean): Promise<Answers<ScriptClient>> {
    const judge = (answer: number): Error | null => (answer > 0 ? null : REFUSED);
    return this.#ask(this.layout.refresh, limitMs, judge, isExact);
  }

  /**
   * After a refresh by a majority: servers that lost it take it again, if they are free. `isHeld`
   * is asked just before the requests are sent, so that none follows a release.
   */
  async repair(
    { votes }: Answers<ScriptClient>,
    limitMs: number,
    isHeld: () => boolean,
  ): Promise<void> {
    const { votesAgainst } = await votes;
    if (votesAgainst.size > 0 && isHeld()) await this.take(limitMs, true);
  }

  give(limitMs: number): Promise<Answers<ScriptClient>> {
    return this.#ask(this.layout.give, limitMs, () => null);
  }

  #ask(
    script: Script,
    limitMs: number,
    judge: Question<ScriptClient>["judge"],
    isExact = false,
  ): Promise<Answers<ScriptClient>> {
    const keys = [this.layout.key];
    const args = this.layout.args(this.identifier, this.#lockTimeout, isExact);
    return this.#quorum.ask({ script, keys, args, limitMs, judge });
  }
}
