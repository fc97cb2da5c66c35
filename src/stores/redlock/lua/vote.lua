-- Votes for an owner at a ballot above the stored one, if the name is free or the owner's own.
--
-- KEYS    node (waiters on a single server), lock, ballot
-- ARGV 1  terms, packed, since an argument costs more than a piece of a text:
--            1-13  the longest usual lease, or this one if it is longer
--           14-30  state and id as the marker has to have them; a single server: v, and for how
--                  many ms after its start it grants no lock
--           31-    ttl of the lease
--      2  record  the ballot, and behind it the record of the holder (H, shared.lua)
--      3  waiter  only if the owner waits: its id, to be entered if the node refuses
--      4  since   only if it differs from the ballot: the time by which the waiter queues
--
-- result  1                                      voted, for the whole ttl
--         G leftMs                               it had voted for this ballot before
--         H stored leftMs holder ballot rank     another owner holds the lock
--         R stored leftMs rank                   reserved for another waiter
--         L stored                               the ballot is not above the stored one
--         A nowUs                                the ballot is too far ahead
--         U, Q waitMs, F, T maxMs, S set         this node does not vote: see `admission`
--         X key type                             foreign data
local call, sub, find = redis.call, string.sub, string.find
local terms, record, lock, ballot = ARGV[1], ARGV[2], KEYS[2], KEYS[3]
local kept = call('MGET', lock, ballot, KEYS[1])
local holder, raw, marker = kept[1], kept[2], kept[3]
local ttlMs, token = sub(terms, 31), sub(record, 1, 16)
local owner = sub(record, 20, find(record, ' ', 20, true) - 1)

-- Whether the vote is uncontended, as far as these keys show: nobody holds the name, waits for it
-- or left a mark on it, and the ballot is above the stored one.
local isOpen, isAdmitted, nowUs = false, false, nil
if IS_SINGLE_SERVER then
  local time = not holder and sub(terms, 15, 30) == '0000000000000000' and call('TIME')
  nowUs = time and time[1] * 1000000 + time[2]
  isAdmitted = time and token - nowUs < 31536000000000
elseif marker and not holder and sub(marker, 17, 46) == sub(terms, 1, 30) then
  -- The highest ballots of a node are less than a year ahead of its clock.
  local gap = (tonumber(sub(marker, 1, 16)) or 0) - token
  isAdmitted = gap >= 0 and gap < 60000000
end
if isAdmitted and raw then
  local stop = find(raw, '%D')
  isOpen = raw < token
    and (not stop and #raw == 16 or stop == 17 and sub(raw, 17, 18) == ' H')
elseif isAdmitted and IS_SINGLE_SERVER then
  isOpen = token - nowUs > -1000000
elseif isAdmitted then
  -- A little less than a day ago. If the floor has to follow the clock, it is not open at once.
  local floor, bound = tonumber(sub(marker, 87, 102)), (call('TIME')[1] - 86399) * 1000000
  isOpen = floor and token - bound > 0 and token - floor > 0 and bound - floor < 30000000
end
-- The name of this channel has the run id of the marker. A client listens to it only over a
-- connection on which the server said that it is this run. So a listener, of any client, proves
-- that the marker was written for this very process.
isOpen = isOpen
  and (IS_SINGLE_SERVER or call('PUBSUB', 'NUMSUB', 'holdfast@/' .. sub(marker, 47, 86))[2] > 0)

-- Otherwise all rules are asked in turn. The first that refuses is the answer.
local node, known, keptUntilMs
if not isOpen then
  node = open(KEYS, kept)
  local refusal = node.foreignBallot()
  if refusal then return refusal end
  refusal, known = node.admission(sub(terms, 15, 30), tonumber(ttlMs))
  refusal = refusal or node.foreignLock()
  if refusal then return refusal end
  local stored, kind, rest = node.readBallot(known)
  local id, channel = ARGV[3], string.match(record, '^%S+ H %S+ %d+ %d+ %d+ (%S+)')
  refusal = node.ahead(stored, known)
    or node.taken(owner, id and channel .. '/' .. id, ARGV[4] or token, stored, kind, rest)
  if refusal then return refusal end
  local number = tonumber(token)
  if number <= stored then
    if holder and number == stored then return { 'G', call('PTTL', lock) } end
    -- The floor of a single server follows its clock. A ballot above the time will be above it.
    return { 'L', node.whole(not raw and IS_SINGLE_SERVER and node.nowUs or stored) }
  end
  if number > math.max(node.nowUs + node.YEAR, known.top) then
    return { 'A', node.whole(node.nowUs) }
  end
  keptUntilMs = node.whole(node.keptUntilMs(number))
  record = token .. node.recordKind() .. sub(record, 19)
end

-- The vote. A key of another type reads as absent; NX leaves it as it is.
local isSet = call('SET', lock, owner, 'PX', ttlMs, holder and 'XX' or 'NX')
if isSet and isOpen and raw and raw >= sub(record, 1, 7) then
  -- Ballots of the same 1,000 seconds share an expiry: that of the first is late enough for all of
  -- them (PERIOD in shared.lua). To set it costs as much as to read a key.
  call('SET', ballot, record, 'KEEPTTL')
  return 1
end
keptUntilMs = keptUntilMs or sub(token, 1, 13) + 87460001
if isSet and call('SET', ballot, record, 'PXAT', keptUntilMs, raw and 'XX' or 'NX') then
  if node then node.raiseTop(known, tonumber(token)) end
  return 1
end
if isSet then call('DEL', lock) end
local foreign = not raw and call('TYPE', ballot).ok or 'none'
if foreign ~= 'none' then return { 'X', ballot, foreign } end
return { 'X', lock, call('TYPE', lock).ok }
