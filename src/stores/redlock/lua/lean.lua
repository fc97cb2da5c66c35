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
-- MGET reads a key of another type, such as a hash of the application, as absent. So a key that is
-- absent by MGET is written with NX, which leaves such a key as it is.
--
-- in:       KEYS ARGV - the three keys; a verb and what goes with it (node.lua, verbs.lua)
-- out:      call sub match verb node lock ballot marker holder raw
-- commands: DEL MGET PUBSUB SET TIME
local call, sub, match, verb = redis.call, string.sub, string.match, ARGV[1]
local node, lock, ballot = KEYS[1], KEYS[2], KEYS[3]
local kept = verb == 'release' and call('MGET', lock, ballot) or call('MGET', lock, ballot, node)
local holder, raw, marker = kept[1], kept[2], kept[3]
if verb == 'vote' then
  local terms, record = ARGV[2], ARGV[3]
  local ttlMs = tonumber(sub(terms, 33))
  -- It votes, for this set of nodes, and for leases of this length, at least at present.
  if not holder and marker and sub(marker, 30, 46) == sub(terms, 14, 30)
    and ((tonumber(sub(marker, 17, 29)) or 0) >= ttlMs
      or (tonumber(sub(marker, 116, 128)) or 0) >= ttlMs
        and (tonumber(sub(marker, 129, 141)) or 0) > call('TIME')[1] * 1000 + 999) then
    local token, top = sub(record, 1, 16), tonumber(sub(marker, 1, 16)) or 0
    local isAbove = top - token >= 0 and top - token < 60000000 and sub(record, 17, 17) == ' '
    if isAbove and raw then
      local stored, kind = match(raw, '^(%d+)( ?H?)')
      isAbove = stored and #stored == 16 and stored < token and (kind == ' H' or #raw == 16)
    elseif isAbove then
      -- A day ago, and a little less; where the floor has to follow, it does below.
      local floor, bound = tonumber(sub(marker, 87, 102)), (call('TIME')[1] - 86399) * 1000000
      isAbove = floor and token - bound > 0 and token - floor > 0 and bound - floor < 30000000
    end
    if isAbove then
      local last = 19 + sub(terms, 31, 32)
      -- Who asks listens to this channel by a connection on which this process told that it is the
      -- one that the marker names: no other process has such a listener.
      local heard = match(record, '^%S+', last + 36) .. '/' .. sub(marker, 47, 86)
      if call('PUBSUB', 'NUMSUB', heard)[2] > 0
        and call('SET', lock, sub(record, 20, last), 'PX', sub(terms, 33), 'NX') then
        if call('SET', ballot, record, 'PXAT', sub(terms, 1, 13), raw and 'XX' or 'NX') then
          return 'G'
        end
        call('DEL', lock)
      end
    end
  end
elseif verb == 'release' then
  -- Five arguments: without a mark, and nobody who goes on waiting. What was kept for long enough
  -- for the ballot is so for the one above it.
  if #ARGV == 5 and holder == ARGV[2] and raw and sub(raw, 1, 19) == ARGV[3] then
    call('DEL', lock)
    call('SET', ballot, ARGV[4], 'KEEPTTL')
    return 1
  end
end
