/**
 * The verbs of the published algorithm on plain keys, which programs with other packages use as
 * well: set if absent, delete or prolong if the value is the own one. A key holds the random value
 * of its holder, and expires.
 *
 * Why it is safe beside those programs: a key that exists is never written, unless it holds the own
 * value. Only the own value is deleted or prolonged. So a key belongs to one holder from its
 * creation to its end, whichever package made it.
 *
 * Each verb has two encodings: a script, and for one key the native comparisons of newer servers
 * (`SET … IFEQ`: Redis 8.4, Valkey 8.1). `DELEX` and `DELIFEQ` are not used: client libraries do
 * not know where their keys are, so they would add no key prefix and ask the wrong node of a
 * Cluster.
 */
import { sha1 } from "./client.js";
import { isNoScript } from "./errors.js";

/** Sends one command to the server of `key`. */
export type SendCommand = (
  key: string,
  command: "eval" | "evalsha" | "set",
  args: readonly string[],
) => Promise<unknown>;

/** A text of Lua with its hash, and the same by native commands, if there are any. */
export interface Script {
  readonly value: string;
  readonly hash: string;
  readonly native?: NativeForm;
}

interface NativeForm {
  /** Whether it does no less than the script, so that it is the first choice. */
  readonly isPreferred: boolean;
  /** The arguments of SET for one key. */
  set(key: string, value: string, ttlMs: string): readonly string[];
  /** The answer of the script for an answer of SET. */
  answer(found: string | null, value: string): number;
}

export function scriptOf(value: string, native?: NativeForm): Script {
  return { value, hash: sha1(value), ...(native && { native }) };
}

type Encoding = "native" | "script";

/** The server refused the command itself, so nothing was done. */
const REFUSALS: Record<Encoding, RegExp> = {
  native: /^NOPERM .*'set'|^ERR syntax error/i,
  script: /^NOPERM .*'eval(sha)?'|^ERR unknown command.{1,2}eval/i,
};

/**
 * Runs scripts by one client, or their native forms. The first request shows what the server knows
 * and permits. That is remembered until the connection changes: another server may know less.
 * `hasSet`: the client can send SET.
 */
export function scriptRunner(send: SendCommand, changes: () => number, hasSet: boolean) {
  /** The count of changes at which the server refused an encoding. */
  const refusedAt: Partial<Record<Encoding, number>> = {};
  /** The count of changes at which the server proved to know IFEQ. */
  let provenAt: number | undefined;
  /** The last run of each value: a request may take several commands, and none may overtake it. */
  const last = new Map<string, Promise<unknown>>();
  return (script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> => {
    if (!hasSet || keys.length !== 1 || !script.native) return run(script, keys, args);
    const [value = ""] = args;
    const go = (): Promise<unknown> => run(script, keys, args);
    const before = last.get(value);
    const mine = (before ? before.then(go, go) : go()).finally(() => {
      if (last.get(value) === mine) last.delete(value);
    });
    last.set(value, mine);
    return mine;
  };

  async function run(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const [key = ""] = keys;
    const native = hasSet && keys.length === 1 ? script.native : undefined;
    const order: Encoding[] = ["script"];
    if (native?.isPreferred) order.unshift("native");
    else if (native) order.push("native");
    const notRefused = order.filter((encoding) => refusedAt[encoding] !== changes());
    let refusal: unknown;
    for (const encoding of notRefused.length > 0 ? notRefused : order) {
      const before = changes();
      try {
        if (encoding === "script" || !native) return await runScript(script, send, keys, args);
        if (provenAt !== before) await prove(send, key, args);
        provenAt = before;
        return await runNative(native, send, key, args);
      } catch (error) {
        const message = messageOf(error);
        // A key of another type is not ours.
        if (encoding === "native" && message.startsWith("WRONGTYPE")) return 0;
        if (!REFUSALS[encoding].test(message)) throw error;
        refusedAt[encoding] = before;
        // A refused script says what the user has to permit.
        if (encoding === "script" || refusal === undefined) refusal = error;
      }
    }
    throw refusal;
  }
}

/**
 * Rejects unless the server knows IFEQ: a key that was taken without it could not be given back.
 * Changes nothing, whatever the key holds.
 */
async function prove(
  send: SendCommand,
  key: string,
  [value = ""]: readonly string[],
): Promise<void> {
  await send(key, "set", [key, value, "IFEQ", value, "KEEPTTL"]);
}

async function runScript(
  { value, hash }: Script,
  send: SendCommand,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const rest = [`${keys.length}`, ...keys, ...args];
  const [key = ""] = keys;
  try {
    return await send(key, "evalsha", [hash, ...rest]);
  } catch (error) {
    if (!isNoScript(error)) throw error;
    return await send(key, "eval", [value, ...rest]);
  }
}

async function runNative(
  native: NativeForm,
  send: SendCommand,
  key: string,
  [value = "", ttlMs = ""]: readonly string[],
): Promise<unknown> {
  const found = await send(key, "set", native.set(key, value, ttlMs));
  return native.answer(found === null ? null : String(found), value);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "";
}

/** The answer of SET with IFEQ. */
const wasEqual = (found: string | null): number => (found === "OK" ? 1 : 0);

/** The answer where all of it is the caller's already. */
export const ALREADY_TAKEN = -1;

/**
 * value ttlMs: takes all keys, or none. The answer is the number of keys, or 0. It is -1 where all
 * of them hold this value already: a client that lost its connection sends a request again. Behind
 * the answer comes the time of the server, unless the user has no right to ask for it. All of it
 * was the caller's at that time, so a later holder is told a later time. The native form
 * has no time.
 */
export const TAKE: Script = scriptOf(
  `
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
`,
  {
    isPreferred: false,
    set: (key, value, ttlMs) => [key, value, "NX", "PX", ttlMs, "GET"],
    answer: (found, value) => (found === null ? 1 : found === value ? ALREADY_TAKEN : 0),
  },
);

/**
 * value ttlMs exact: prolongs all keys, if all of them hold this value. The time that a key has
 * left is never shortened, unless exact is 1. The native form may shorten it, as redlock does.
 */
export const EXTEND: Script = scriptOf(
  `
for _, key in ipairs(KEYS) do
  if redis.pcall('get', key) ~= ARGV[1] then return 0 end
end
for _, key in ipairs(KEYS) do
  if ARGV[3] == '1' or redis.call('pttl', key) < tonumber(ARGV[2]) then
    redis.call('pexpire', key, ARGV[2])
  end
end
return #KEYS
`,
  {
    isPreferred: false,
    set: (key, value, ttlMs) => [key, value, "IFEQ", value, "PX", ttlMs],
    answer: wasEqual,
  },
);

/** value: deletes the keys that hold this value. The answer is their number. */
export const GIVE: Script = scriptOf(
  `
local count = 0
for _, key in ipairs(KEYS) do
  if redis.pcall('get', key) == ARGV[1] then count = count + redis.call('del', key) end
end
return count
`,
  {
    isPreferred: true,
    // A key that expired in 1970 is absent from now on.
    set: (key, value) => [key, value, "IFEQ", value, "PXAT", "1"],
    answer: wasEqual,
  },
);
