/**
 * One identifier at one key: a plain key for a mutex, members of a sorted set for permits. Asks all
 * servers, and counts what a majority did.
 */
import { type Answers, ClientQuorum, type Question } from "../client-quorum.js";
import { ALREADY_TAKEN, EXTEND, GIVE, TAKE } from "../key-scripts.js";
import { GIVE_PERMITS, REFRESH_PERMITS, TAKE_PERMITS } from "../permit-scripts.js";
import type { Script, ScriptClient } from "../script-client.js";

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
