-- A vote on a free name, and a release by the holder that nobody waits for: the common cases, in as
-- few calls as can be, and before any function is made. What it cannot decide it leaves as it was
-- to the parts that follow, together with what it has read.
--
-- A ballot that is near the highest ones here needs no look at the clock: it is neither a year
-- ahead of them nor so old that its own time is no measure of how long to keep it. 16 digits
-- compare as text.
--
-- What is sent is packed, since an argument costs both sides more than to cut it up here does.
--
-- in:       KEYS ARGV - the three keys; a verb and what goes with it (node.lua, verbs.lua)
-- out:      call sub match verb node lock ballot marker holder raw
-- commands: DEL MGET PUBSUB SET TIME
local call, sub, match, verb = redis.call, string.sub, string.match, ARGV[1]
local node, lock, ballot = KEYS[1], KEYS[2], KEYS[3]
local marker, holder, raw
if verb == 'vote' then
  local terms, record = ARGV[2], ARGV[3]
  local kept = call('MGET', lock, ballot, node)
  holder, raw, marker = kept[1], kept[2], kept[3]
  -- It votes, for this set of nodes, and for leases of this length.
  if not holder and marker and sub(marker, 30, 46) == sub(terms, 14, 30)
    and sub(marker, 17, 29) - sub(terms, 33) >= 0 then
    local token, top = sub(record, 1, 16), sub(marker, 1, 16)
    local isAbove = token <= top and top - token < 60000000 and sub(record, 17, 17) == ' '
    if isAbove and raw then
      local kind = sub(raw, 17, 18)
      isAbove = (kind == '' or kind == ' H') and sub(raw, 1, 16) < token
    elseif isAbove then
      -- A day ago, and a little less; where the floor has to follow, it does below.
      local floor, bound = sub(marker, 87, 102), (call('TIME')[1] - 86399) * 1000000
      isAbove = token - bound > 0 and token > floor and bound - floor < 30000000
    end
    if isAbove then
      local last = 19 + sub(terms, 31, 32)
      -- Who asks listens to this channel by a connection on which this process told that it is the
      -- one that the marker names: no other process has such a listener.
      local heard = match(record, '^%S+', last + 36) .. '/' .. sub(marker, 47, 86)
      if call('PUBSUB', 'NUMSUB', heard)[2] > 0 then
        call('SET', lock, sub(record, 20, last), 'PX', sub(terms, 33))
        call('SET', ballot, record, 'PXAT', sub(terms, 1, 13))
        return 'G'
      end
    end
  end
elseif verb == 'release' then
  local kept = call('MGET', lock, ballot)
  holder, raw = kept[1], kept[2]
  -- Five arguments: without a mark, and nobody who goes on waiting. What was kept for long enough
  -- for the ballot is so for the one above it.
  if #ARGV == 5 and holder == ARGV[2] and raw and sub(raw, 1, 19) == ARGV[3] then
    call('DEL', lock)
    call('SET', ballot, ARGV[4], 'KEEPTTL')
    return 1
  end
end
