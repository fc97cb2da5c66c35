import { type Fenced, invalidValue, StaleTokenError } from "../errors/index.js";
import { knownOptions } from "../options/known-options.js";
import { sha1 } from "../stores/redis-client/client.js";
import { isNoScript } from "../stores/redis-client/errors.js";
import type { Ioredis } from "../stores/redis-client/ioredis.js";
import type { NodeRedis } from "../stores/redis-client/node-redis.js";
import { driverOf } from "../stores/redis-client/supported-clients.js";

/** A script that writes, and what it writes to. */
export interface GuardedScript {
  /** Lua, with `KEYS` and `ARGV` as in every script of Redis. */
  readonly script: string;
  /** At least one: on a Cluster, the fence is kept beside the first of them. */
  readonly keys: readonly string[];
  /** Default: none. */
  readonly args?: readonly string[];
  /** Where the highest token is kept. Default: a key for the lock, in the slot of the first key. */
  readonly fenceKey?: string;
}

const PASSED = "passed";

/**
 * Compares the token with the highest one, keeps it, and runs the script: Redis does all of it
 * alone. Tokens are texts of digits: Lua would round a large number.
 */
const guarded = (script: string): string => `
local highest = redis.call("GET", KEYS[1]) or "0"
local token = ARGV[1]
if #highest > #token or (#highest == #token and highest > token) then return highest end
redis.call("SET", KEYS[1], token)
local function write(KEYS, ARGV)
${script}
end
return {"${PASSED}", write({unpack(KEYS, 2)}, {unpack(ARGV, 2)})}`;

/**
 * Runs a script that writes, unless a later holder of the lock has run one before: then it throws
 * `StaleTokenError`, and nothing was written. Resolves with the result of the script.
 *
 * @example
 * import { redisFence } from "holdfast/fence";
 *
 * await redisFence(redis, lease, {
 *   script: 'return redis.call("SET", KEYS[1], ARGV[1])',
 *   keys: ["stock:7"],
 *   args: ["12"],
 * });
 */
export async function redisFence(
  client: Ioredis | NodeRedis,
  lease: Fenced,
  write: GuardedScript,
): Promise<unknown> {
  const known = ["script", "keys", "args", "fenceKey"] as const;
  const { script, keys, args = [], fenceKey } = knownOptions(write, known);
  const [first] = keys;
  if (first === undefined)
    throw invalidValue("keys", "an empty list", "must have at least one key");
  const guard = fenceKey ?? `holdfast:fence:{${tagOf(first)}}:${lease.name}`;
  const values = [`${keys.length + 1}`, guard, ...keys, `${lease.token}`, ...args];
  const driver = driverOf(client);
  const text = guarded(script);
  const run = (command: string, code: string): Promise<unknown> =>
    driver.send(guard, command, [code, ...values]);
  const answer = await run("evalsha", sha1(text)).catch((error: unknown) => {
    if (isNoScript(error)) return run("eval", text);
    throw error;
  });
  if (Array.isArray(answer)) return resultOf(answer[1]);
  throw new StaleTokenError(lease, BigInt(String(answer)));
}

/** A script may also return an error. */
function resultOf(result: unknown): unknown {
  if (result instanceof Error) throw result;
  return result ?? null;
}

/** The part of a key that decides about its slot. */
function tagOf(key: string): string {
  const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key;
  if (!tag.includes("}")) return tag;
  throw invalidValue("keys", key, "must have no } outside of a hash tag, unless fenceKey is given");
}
