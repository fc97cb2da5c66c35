/**
 * The verbs of the published algorithm on plain keys, which programs with other packages use as
 * well: set if absent, delete or prolong if the value is the own one. A key holds the random value
 * of its holder, and expires.
 *
 * Why it is safe beside those programs: a key that exists is never written, unless it holds the own
 * value. Only the own value is deleted or prolonged. So a key belongs to one holder from its
 * creation to its end, whichever package made it.
 */
import { sha1 } from "./client.js";

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
