-- The short path for a vote on a free name, and for a release by the holder without waiters. It
-- makes no function and as few calls as possible. A command that it does not decide goes on to the
-- next parts, with the values that were read; nothing has been written then.
--
-- A ballot close to the highest ballots of the node needs no look at the clock: it is less than a
-- year ahead of them, and new enough that its own time says how long to keep it. Ballots have 16
-- digits and compare as text.
--
-- Arguments are packed: each of them costs client and server more than cutting it up does.
--
-- MGET reads a key of another type, such as a hash of the application, as absent. So a key that is
-- absent by MGET is written with NX, which leaves such a key as it is.
--
-- in:       KEYS ARGV - the three keys; a verb and its arguments (node.lua, verbs.lua)
-- out:      call sub match verb node lock ballot marker holder raw
-- commands: DEL MGET PUBSUB SET TIME
local call, sub, match, verb = redis.call, string.sub, string.match, ARGV[1]
local node, lock, ballot = KEYS[1], KEYS[2], KEYS[3]
local kept = verb == 'release' and call('MGET', lock, ballot) or call('MGET', lock, ballot, node)
local holder, raw, marker = kept[1], kept[2], kept[3]
if verb == 'vote' then
  local terms, record = ARGV[2], ARGV[3]
  local ttlMs = tonumber(sub(terms, TERMS.ttl))
  -- The node votes, for this set of nodes, and for leases of this length, at least at present.
  if not holder and marker and sub(marker, MARKER.state.to.id) == sub(terms, TERMS.state.to.id)
    and ((tonumber(sub(marker, MARKER.max)) or 0) >= ttlMs
      or (tonumber(sub(marker, MARKER.long)) or 0) >= ttlMs
        and (tonumber(sub(marker, MARKER.till)) or 0) > call('TIME')[1] * 1000 + 999) then
    local token, top = sub(record, RECORD.ballot), tonumber(sub(marker, MARKER.top)) or 0
    local isAbove = top - token >= 0 and top - token < 60000000
      and sub(record, RECORD.afterBallot) == ' '
    if isAbove and raw then
      local stored, kind = match(raw, '^(%d+)( ?H?)')
      isAbove = stored and #stored == RECORD.ballot.size and stored < token
        and (kind == ' H' or #raw == RECORD.ballot.size)
    elseif isAbove then
      -- A little less than a day ago. If the floor has to follow the clock, the next parts do it.
      local floor, bound = tonumber(sub(marker, MARKER.floor)), (call('TIME')[1] - 86399) * 1000000
      isAbove = floor and token - bound > 0 and token - floor > 0 and bound - floor < 30000000
    end
    if isAbove then
      local last = RECORD.words.before + sub(terms, TERMS.ownerLength)
      -- The name of this channel has the run id of the marker. The client that asks listens to it
      -- only over a connection on which the server said that it is this run. So a listener proves
      -- that the marker was written for this very process.
      local channel = match(record, '^%S+', last + AFTER_OWNER.words)
      local heard = channel .. '/' .. sub(marker, MARKER.run)
      local owner = sub(record, RECORD.words.start, last)
      if call('PUBSUB', 'NUMSUB', heard)[2] > 0
        and call('SET', lock, owner, 'PX', sub(terms, TERMS.ttl), 'NX') then
        local keptUntil = sub(terms, TERMS.keptUntil)
        if call('SET', ballot, record, 'PXAT', keptUntil, raw and 'XX' or 'NX') then
          return 'G'
        end
        call('DEL', lock)
      end
    end
  end
elseif verb == 'release' then
  -- Five arguments: without a mark, and without a waiter of the same process. The time for which
  -- the ballot is kept is long enough for the ballot above it.
  if #ARGV == 5 and holder == ARGV[2] and raw
    and sub(raw, RECORD.ballot.to.afterKind) == ARGV[3] then
    call('DEL', lock)
    call('SET', ballot, ARGV[4], 'KEEPTTL')
    return 1
  end
end
