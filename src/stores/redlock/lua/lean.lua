-- A vote on a free name, and a release by the holder that nobody waits for: the common cases, in as
-- few calls as can be, and before any function is made. What it cannot decide it leaves as it was
-- to the parts that follow, together with what it has read.
--
-- A ballot that is near the highest ones here needs no look at the clock: it is neither a year
-- ahead nor so old that its own time is no measure of how long to keep it. 16 digits compare as
-- text.
--
-- What is sent is packed, since an argument costs both sides more than to cut it up here does.
--
-- in:       KEYS ARGV - the four keys; a verb and what goes with it (node.lua, verbs.lua)
-- out:      call sub verb node lock ballot waiters marker isAlive holder raw
-- commands: DEL EXISTS GET HMGET PUBSUB SET TIME
local call, sub, verb = redis.call, string.sub, ARGV[1]
local node, lock, ballot, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local marker, isAlive, holder, raw
if verb == 'vote' then
  local owner, terms, record = ARGV[2], ARGV[3], ARGV[4]
  local token, ttlMs = sub(record, 1, 16), sub(terms, 11)
  marker = call('HMGET', node, 'run', 'set', 'from', 'max', 'floor', 'top')
  local floor, top = marker[5], marker[6]
  -- Who asks listens to this channel by a connection on which this process told that it is the one
  -- that the marker names: no other process has such a listener.
  local channel = string.match(record, '^%S+', #owner + 55)
  isAlive = top and call('PUBSUB', 'NUMSUB', channel .. '/' .. marker[1])[2] > 0
  holder, raw = call('GET', lock), call('GET', ballot)
  if isAlive and not holder and sub(record, 17, 17) == ' ' and #top == 16 and token <= top
    and top - token < 60000000 and marker[2] == ARGV[5] and marker[3] == '0' and floor ~= ''
    and marker[4] - ttlMs >= 0 then
    local isAbove
    if raw then
      local kind = sub(raw, 17, 18)
      isAbove = (kind == '' or kind == ' H') and sub(raw, 1, 16) < token
    else
      -- A day ago, and a little less; where the floor has to follow, it does below.
      local bound = (call('TIME')[1] - 86399) * 1000000
      isAbove = token - bound > 0 and token - floor > 0 and bound - floor < 30000000
    end
    if isAbove then
      call('SET', lock, owner, 'PX', ttlMs)
      call('SET', ballot, record, 'EXAT', sub(terms, 1, 10))
      return 'G'
    end
  end
elseif verb == 'release' then
  holder, raw = call('GET', lock), call('GET', ballot)
  -- Five arguments: without a mark, and nobody who goes on waiting. What was kept for long enough
  -- for the ballot is so for the one above it.
  if #ARGV == 5 and holder == ARGV[2] and raw and sub(raw, 1, 19) == ARGV[3]
    and call('EXISTS', waiters) == 0 then
    call('DEL', lock)
    call('SET', ballot, ARGV[4], 'KEEPTTL')
    return 1
  end
end
