/**
 * The verbs of the published algorithm on plain keys, which programs with other packages use as
 * well: set if absent, delete or prolong if the value is the own one. A key holds the random value
 * of its holder, and expires.
 *
 * Why it is safe beside those programs: a key that exists is never written, unless it holds the own
 * value. Only the own value is deleted or prolonged. So a key belongs to one holder from its
 * creation to its end, whichever package made it.
 *
 * Each verb has two encodings: in Lua, for several keys in one step; and in native commands, for
 * one key and a user who may not run scripts.
 */
import type { Driver } from "./driver.js";
import { sha1 } from "./sha1.js";

/** A text of Lua with its hash. */
export interface Script {
  readonly value: string;
  readonly hash: string;
}

export function scriptOf(value: string): Script {
  return { value, hash: sha1(value) };
}

/** The answer where all of it is the caller's already. */
export const ALREADY_TAKEN = -1;

/**
 * value ttlMs: takes all keys, or none. The answer is the number of keys, or 0. It is -1 where all
 * of them hold this value already: a client that lost its connection sends a request again. Behind
 * the answer comes the time of the server, unless the user has no right to ask for it. All of it
 * was the caller's at that time, so a later holder is told a later time.
 */
export const TAKE: Script = scriptOf(`
local function answer(count)
  local time = redis.pcall('time')
  return { count, time[1], time[2] }
end
local own = 0
for _, key in ipairs(KEYS) do
  if redis.call('exists', key) == 1 then
    if redis.pcall('get', key) ~= ARGV[1] then return 0 end
    own = own + 1
  end
end
if own == #KEYS then return answer(-1) end
if own > 0 then return 0 end
for _, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end
return answer(#KEYS)
`);

/**
 * value ttlMs exact: prolongs all keys, if all of them hold this value. The time that a key has
 * left is never shortened, unless exact is 1.
 */
export const EXTEND: Script = scriptOf(`
for _, key in ipairs(KEYS) do
  if redis.pcall('get', key) ~= ARGV[1] then return 0 end
end
for _, key in ipairs(KEYS) do
  if ARGV[3] == '1' or redis.call('pttl', key) < tonumber(ARGV[2]) then
    redis.call('pexpire', key, ARGV[2])
  end
end
return #KEYS
`);

/** value: deletes the keys that hold this value. The answer is their number. */
export const GIVE: Script = scriptOf(`
local count = 0
for _, key in ipairs(KEYS) do
  if redis.pcall('get', key) == ARGV[1] then count = count + redis.call('del', key) end
end
return count
`);

/** A key that expires at this time is deleted at once. */
const PAST_MS = "1";

/**
 * The verbs for one key by `SET … IFEQ`: Redis 8.4, Valkey 8.1 or newer. `DELEX` and `DELIFEQ` are
 * not used: the client libraries do not know their keys, so a key prefix would be missing.
 */
export class NativeKeys {
  readonly #send: (key: string, command: string, args: readonly string[]) => Promise<unknown>;

  /** `send` rejects, or answers otherwise than the server, where the key is of another type. */
  constructor(send: Driver["send"]) {
    this.#send = send;
  }

  /**
   * Whether the server knows `SET … IFEQ`; rejects where that is not certain. Changes nothing: no
   * key has this text.
   */
  static async areKnown(driver: Driver, key: string): Promise<boolean> {
    try {
      await driver.send(key, "set", [key, "?", "IFEQ", "?"]);
      return true;
    } catch (error) {
      if (/syntax error/i.test(error instanceof Error ? error.message : "")) return false;
      throw error;
    }
  }

  /** Sets the key if it is absent. The answer is the value of before; null where it was absent. */
  take(key: string, value: string, ttlMs: number): Promise<unknown> {
    return this.#send(key, "set", [key, value, "PX", `${ttlMs}`, "NX", "GET"]);
  }

  /** Whether the key had this value. It expires after `ttlMs` then, sooner or later than before. */
  prolong(key: string, value: string, ttlMs: number): Promise<boolean> {
    return this.replace(key, value, value, ["PX", `${ttlMs}`]);
  }

  /** Whether the key had this value, and is deleted. */
  delete(key: string, value: string): Promise<boolean> {
    return this.replace(key, value, value, ["PXAT", PAST_MS]);
  }

  /** Whether the key had the value `before`, or was absent where that is null. */
  async replace(
    key: string,
    before: string | null,
    value: string,
    expiry: readonly string[],
  ): Promise<boolean> {
    const condition = before === null ? ["NX"] : ["IFEQ", before];
    return (await this.#send(key, "set", [key, value, ...condition, ...expiry])) === "OK";
  }
}
