-- The short path for a vote on a free name, and for a release by the holder without waiters. It
-- makes no function and as few calls as possible. A command that it does not decide goes on to the
-- next parts; nothing has been written then.
--
-- A call costs the most, then a search by a pattern, an argument, a piece of a text. So arguments
-- are packed, and texts of the same size are compared instead of numbers.
--
-- MGET reads a key of another type, such as a hash of the application, as absent. So a key that is
-- absent by MGET, or that was not read, is written with NX, which leaves such a key as it is.
--
-- in:       KEYS ARGV - the three keys; a verb and its arguments (node.lua, verbs.lua)
--           IS_LONE IS_SPREAD - the server decides alone; and is a Cluster (redlock-node.ts)
-- out:      call sub match
-- commands: DEL MGET PUBSUB SET TIME
local call, sub, match, verb = redis.call, string.sub, string.match, ARGV[1]
local find, lock, ballot = string.find, KEYS[2], KEYS[3]
if verb == 'vote' then
  local terms, record = ARGV[2], ARGV[3]
  local kept = call('MGET', ballot, KEYS[1])
  local raw, marker = kept[1], kept[2]
  -- The node votes, for this set of nodes, and for the longest lease that this client acquires.
  local isAdmitted = marker and sub(marker, MARKER.max.to.id) == sub(terms, TERMS.longest.to.id)
  -- Or for leases of this length, at least at present.
  if marker and not isAdmitted and sub(marker, MARKER.state.to.id) == sub(terms, TERMS.state.to.id)
  then
    local ttlMs = tonumber(sub(terms, TERMS.ttl))
    isAdmitted = (tonumber(sub(marker, MARKER.max)) or 0) >= ttlMs
      or (tonumber(sub(marker, MARKER.long)) or 0) >= ttlMs
        and (tonumber(sub(marker, MARKER.till)) or 0) > call('TIME')[1] * 1000 + 999
  end
  local token = sub(record, RECORD.ballot)
  local gap = isAdmitted and (tonumber(sub(marker, MARKER.top)) or 0) - token
  -- A lone server has no marker. Its clock says the same of a ballot that is close to it.
  if IS_LONE and raw and sub(terms, TERMS.id) == '0000000000000000' then
    gap = call('TIME')[1] * 1000000 + 30000000 - token
  end
  -- A ballot close to the highest ballots of the node needs no look at the clock: it is less than a
  -- year ahead of them, and new enough that its own time says how long to keep it. A ballot that
  -- has not 16 digits is cut to a number that is far from them.
  if gap and gap >= 0 and gap < 60000000 then
    local isAbove
    if raw then
      local stop = find(raw, '%D')
      isAbove = raw < token and (not stop and #raw == RECORD.ballot.size
        or stop == RECORD.afterBallot.start and sub(raw, RECORD.afterBallot.to.kind) == ' H')
    else
      -- A little less than a day ago. If the floor has to follow the clock, the next parts do it.
      local floor, bound = tonumber(sub(marker, MARKER.floor)), (call('TIME')[1] - 86399) * 1000000
      isAbove = floor and token - bound > 0 and token - floor > 0 and bound - floor < 30000000
    end
    -- The name of this channel has the run id of the marker. A client listens to it only over a
    -- connection on which the server said that it is this run. So a listener, of any client, proves
    -- that the marker was written for this very process.
    if isAbove
      and (IS_LONE or call('PUBSUB', 'NUMSUB', 'holdfast@/' .. sub(marker, MARKER.run))[2] > 0)
      and call('SET', lock, ARGV[4], 'PX', sub(terms, TERMS.ttl), 'NX') then
      -- Ballots of the same 1,000 seconds share an expiry: that of the first is late enough for all
      -- of them (PERIOD in node.lua). To set it costs as much as to read a key.
      if raw and raw >= sub(record, RECORD.period) then
        call('SET', ballot, record, 'KEEPTTL')
        return 1
      end
      local keptUntil = sub(terms, TERMS.keptUntil)
      if call('SET', ballot, record, 'PXAT', keptUntil, raw and 'XX' or 'NX') then
        return 1
      end
      call('DEL', lock)
    end
  end
elseif verb == 'release' and #ARGV == 4 then
  -- Without a mark, and without a waiter of the same process. The time for which the ballot is kept
  -- is long enough for the ballot above it.
  local start, kept = ARGV[2], call('MGET', lock, ballot)
  local raw = kept[2]
  if raw and kept[1] == sub(start, RECORD.words.start, -2) and find(raw, start, 1, true) == 1 then
    call('DEL', lock)
    call('SET', ballot, ARGV[3], 'KEEPTTL')
    return 1
  end
end
