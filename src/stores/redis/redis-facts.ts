import { pause } from "../../time/pause.js";
import type { Runtime } from "../../time/runtime.js";
import { TimeLimitError } from "../../time/timers.js";
import { measureRoundTrip, type Probes, type RoundTrip } from "../doctor.js";
import type { Driver, Master, SentinelState } from "../redis-client/driver.js";
import { saidBy } from "../redis-client/failure.js";
import {
  type Fields,
  infoFields,
  type ServerFacts,
  serverProbes,
} from "../redis-client/server-facts.js";
import type { Layout } from "./layout.js";
import { WaitLink } from "./wait-link.js";

/** The state of a deployment that concerns the store, beside that of its servers. */
export interface RedisFacts {
  /** Why the script of the store does not run; null where it does. */
  readonly script: string | null;
  /** Why messages do not arrive; null where they do. */
  readonly messages: string | null;
  /** The answer of WAIT; null where the store does not use it. */
  readonly wait: WaitAnswer | null;
  /** The commands that the user may not call. */
  readonly refusedCommands: readonly string[];
  /** The opinion of a sentinel on each master that it knows; null where there is none. */
  readonly sentinel: SentinelState | null;
  readonly roundTrip: RoundTrip;
}

/** The number of replicas that have the last write, or why that cannot be told. */
export type WaitAnswer = {
  readonly replicas: number;
  readonly limitMs: number;
} & ({ readonly count: number } | { readonly refusal: string });

/** The state of one of the servers, and how the store uses it. */
export interface MasterFacts extends ServerFacts {
  readonly use: RedisTerms;
  /** The Cluster as this server sees it; null where the client is for one server. */
  readonly cluster: Fields | null;
}

/** How the store is used. */
export interface RedisTerms {
  /** The option `replicas`. */
  readonly replicas: number;
  /** A failover may come without a person: by Sentinel, or in a Cluster. */
  readonly failsOver: boolean;
}

/** The options of the store about replicas. */
export interface ReplicaTerms {
  readonly replicas: number;
  readonly replicaTimeoutMs: number;
}

/** The tools of the arbiter that the probes use. */
export interface RedisTools {
  readonly driver: Driver;
  readonly layout: Layout;
  readonly runtime: Runtime;
  /** Runs the script without commands. */
  greet(): Promise<unknown>;
}

/** How long a message to oneself may take. */
const MESSAGE_MS = 1_000;
/** How long replicas may take at most, within the time for one fact. */
const MAX_WAIT_MS = 500;

/**
 * Calls each command that the scripts need in a way that changes nothing: a read, a write of no
 * effect on a key that is never used, or a write with an argument that Redis refuses after it has
 * checked the rights. HSETNX is left out: it has no such way. The keys are those of the script.
 */
export const RIGHTS_PROBE = `
local key = KEYS[1]
local calls = {
  {'time'}, {'info', 'server'}, {'type', key}, {'get', key}, {'exists', key}, {'hget', key, 'f'},
  {'hmget', key, 'f'}, {'hscan', key, '0'}, {'hrandfield', key},
  {'zrange', key, '0', '0'}, {'publish', ARGV[1], ''},
  {'set', key, 'v', 'none'}, {'pexpireat', key, 'none'}, {'hset', key, 'f', 'v', 'g'},
  {'zadd', key, 'none', 'm'}, {'hdel', key, 'f'}, {'zrem', key, 'm'}, {'unlink', key},
}
local refused = {}
for _, call in ipairs(calls) do
  local answer = redis.pcall(unpack(call))
  local text = type(answer) == 'table' and answer.err or ''
  for _, sign in ipairs({'ACL failure', 'NOPERM', "can't run this", "can't access"}) do
    if string.find(text, sign, 1, true) then refused[#refused + 1] = call[1] break end
  end
end
return refused`;

export function masterProbes(
  master: Master,
  { driver, runtime }: RedisTools,
  use: RedisTerms,
): Probes<MasterFacts> {
  return {
    ...serverProbes(master, runtime),
    use: () => use,
    cluster: async () => {
      if (!driver.isCluster) return null;
      return infoFields(String(await master.send(["cluster", "info"])));
    },
  };
}

export function redisProbes(
  { driver, layout, runtime, greet }: RedisTools,
  { replicas, replicaTimeoutMs }: ReplicaTerms,
): Probes<RedisFacts> {
  const register = layout.registerOf(layout.shards[0] ?? "");
  const channel = layout.channelPrefix + runtime.random.id();
  return {
    script: () => reasonOf(greet()),
    messages: () => reasonOf(hearOneself(driver, runtime, channel)),
    wait: async () => {
      if (replicas === 0) return null;
      const limitMs = Math.min(replicaTimeoutMs, MAX_WAIT_MS);
      const connection = await driver.open(register);
      const key = driver.keyPrefix + register;
      const link = new WaitLink(connection, runtime.timers, key, limitMs);
      try {
        await link.prepare();
        return { replicas, limitMs, count: await link.count(replicas) };
      } catch (error) {
        if (error instanceof TimeLimitError) throw error;
        return { replicas, limitMs, refusal: saidBy(error) };
      } finally {
        connection.close();
      }
    },
    refusedCommands: async () => {
      const key = `${register}?`;
      const refused = await driver.send(key, "eval", [RIGHTS_PROBE, "1", key, channel]);
      return (refused as readonly unknown[]).map(String);
    },
    sentinel: () => driver.sentinel?.() ?? null,
    roundTrip: () => measureRoundTrip(runtime.clock, () => driver.send(register, "time", [])),
  };
}

/** Null where the promise is kept, else the reason why not. */
async function reasonOf(promise: Promise<unknown>): Promise<string | null> {
  try {
    await promise;
    return null;
  } catch (error) {
    return saidBy(error);
  }
}

async function hearOneself(driver: Driver, runtime: Runtime, channel: string): Promise<void> {
  const connection = await driver.open(null);
  try {
    let onHeard = (_isHeard: boolean): void => {};
    const heard = new Promise<boolean>((resolve) => {
      onHeard = resolve;
    });
    await connection.subscribe(channel, () => onHeard(true));
    await driver.send("", "publish", [channel, ""]);
    void pause(runtime.timers, MESSAGE_MS, true).then(() => onHeard(false));
    if (!(await heard)) throw new Error(`no message within ${MESSAGE_MS} ms`);
  } finally {
    connection.close();
  }
}
