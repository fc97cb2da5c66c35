/**
 * The permits of redis-semaphore: a sorted set of members, whose score is the time of the last
 * refresh in milliseconds. A member whose score is older than `lockTimeout` counts as gone.
 *
 * redis-semaphore takes the time of the client; these scripts take the time of the server. So
 * clients of this package agree about the time, whatever their own clocks say. All users of a
 * semaphore must have the same `lockTimeout`: a member does not tell its own.
 */
import { type Script, scriptOf } from "./script-client.js";

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
export const TAKE_PERMITS: Script = scriptOf(`${BEGIN}${EVICT}${COUNT_OWN}
if own == #members then return -1 end
if redis.call('zcard', key) - own + #members > tonumber(ARGV[2]) then return 0 end
${ADD}
return 1
`);

/**
 * lockTimeout limit members: refreshes the members, if all of them are there. Members are evicted
 * after that: the permit may have been taken with a longer lockTimeout.
 */
export const REFRESH_PERMITS: Script = scriptOf(`${BEGIN}${COUNT_OWN}
if own < #members then return 0 end
${ADD}${EVICT}
return 1
`);

/** lockTimeout limit members: removes the members. The answer is the number that was there. */
export const GIVE_PERMITS: Script = scriptOf(`
return redis.call('zrem', KEYS[1], unpack(ARGV, 3))
`);
