-- The other verbs of a node, one in each call, all or nothing; `renew` is about many leases.
--
-- KEYS     node (waiters on a single server), lock, ballot; `renew`: node, and lock and ballot of
--          each lease. A request about the node itself gives the key of the node three times.
-- ARGV 1   the verb; each says below what follows, and what it answers. All of them may answer
--          X key type, the refusal for foreign data.
local call, match, max = redis.call, string.match, math.max
local verb = ARGV[1]

-- Prolongs a lease, and never shortens it. The record names the channel that hears of a revocation.
-- After a resume that is the channel of another client; a node that missed the resume learns it
-- from the next renewal.
local function prolong(node, lock, ballot, owner, token, ttlMs, channel)
  local whole = node.whole
  local head, voted, heard, tail = match(node.raw or '', '^(%d+ [HW] (%S+) %d+ %d+ %d+ )(%S+)(.*)$')
  if voted == owner and heard ~= channel then
    call('SET', ballot, head .. channel .. tail, 'KEEPTTL')
  end
  local leftMs = call('PTTL', lock)
  if leftMs < ttlMs then
    call('PEXPIRE', lock, ttlMs)
    leftMs = ttlMs
  end
  -- The record of the holder stays for as long as the holder does.
  local untilUs = max(node.nowUs, token) + 2 * node.DAY
  call('PEXPIREAT', ballot, whole(math.floor(untilUs / 1000)))
  return { 'G', leftMs }
end

local function revocation(kind, rest, owner)
  if kind ~= 'V' then return nil end
  local revoked, reason = match(rest, '^(%S+) (.*)$')
  if revoked == owner then return { 'V', reason } end
end

-- If the lock is free here, and the node knows no newer ballot, the lock is taken again.
local function renew(keys, id, owner, token, span, ttlMs, channel)
  local node = open(keys)
  local foreign = node.foreignBallot()
  if foreign then return foreign end
  local _, lock, ballot = unpack(keys)
  token, ttlMs = tonumber(token), tonumber(ttlMs)
  if node.holder ~= owner and (node.holder or node.foreignLock()) then return { 'H' } end
  if node.holder then
    local known, refusal = node.readMarker()
    if refusal then return refusal end
    local maxMs = known and node.longest(known) or 0
    if maxMs < ttlMs then return { 'T', node.whole(maxMs) } end
    return prolong(node, lock, ballot, owner, token, ttlMs, channel)
  end
  local stored, kind, rest = node.readBallot()
  local revoked = revocation(kind, rest, owner)
  if revoked then return revoked end
  -- No other node can prove that the lease went on.
  if IS_SINGLE_SERVER then return { 'N' } end
  local refusal, known = node.admission(id, ttlMs)
  if refusal then return refusal end
  -- Only a ballot counts, not a floor: a floor says which ballots may have been here, and the
  -- holder proves that they were not.
  if node.raw and stored > token then return { 'N' } end
  call('SET', lock, owner, 'PX', ttlMs)
  local record = { owner, node.whole(token), span, node.whole(node.nowMs), channel, '' }
  node.writeBallot(max(stored, token), node.recordKind() .. ' ' .. table.concat(record, ' '))
  node.raiseTop(known, token)
  return { 'G', ttlMs, 1 }
end

-- renew: id channel, and owner ballot span ttlMs of each lease. A list with one answer for each:
-- G leftMs, and 1 if the lock was taken again; H: another owner has it; V reason: revoked; N: gone;
-- T maxMs and the other refusals of `admission`; E with the error when the verb fails for the
-- lease, and then the next lease follows. The word `user_script` tells that it may have written
-- before. All leases share the first key, which `renew` does not use on a single server.
if verb == 'renew' then
  local answers = {}
  for at = 1, (#KEYS - 1) / 2 do
    local owner, token, span, ttlMs = unpack(ARGV, 4 * at, 4 * at + 3)
    local isDone, answer = pcall(renew, { KEYS[1], KEYS[2 * at], KEYS[2 * at + 1] },
      ARGV[2], owner, token, span, ttlMs, ARGV[3])
    if not isDone then
      local said = type(answer) == 'table' and answer.err or answer
      answer = { 'E', tostring(said) .. ' (user_script)' }
    end
    answers[at] = answer
  end
  return answers
end

local _, lock, ballot = unpack(KEYS)
local node = open(KEYS)
local nowMs, whole, readBallot = node.nowMs, node.whole, node.readBallot
local holder, waiters = node.holder, node.waiters
local foreign = node.foreignBallot()
if foreign then return foreign end

-- waiter since: looks at the name, and adds the waiter to the queue. As `vote`, or O stored rank
-- when nobody holds the name.
if verb == 'wait' then
  local waiter, since = unpack(ARGV, 2)
  local refusal = node.foreignLock()
  if refusal then return refusal end
  local known = node.readMarker()
  local stored, kind, rest = readBallot(known)
  refusal = node.ahead(stored, known) or node.taken(nil, waiter, since, stored, kind, rest)
  if refusal then return refusal end
  return { 'O', whole(stored), node.enqueue(waiter, since, kind), node.foreignQueue }
end

-- waiter reserveMs: the waiter leaves the queue; 1. If it was woken last, the next waiter is woken,
-- unless reserveMs is 0.
if verb == 'leave' then
  local waiter, reserveMs = unpack(ARGV, 2)
  if waiters then call('ZREM', waiters, waiter) end
  if node.foreignLock() then return 1 end
  reserveMs = tonumber(reserveMs)
  local stored, kind, rest = readBallot()
  if kind == 'R' and match(rest, '^%d+ (.*)$') == waiter and not holder then
    node.writeBallot(stored, reserveMs > 0 and node.wakeNext('', '', reserveMs) or ' W')
  end
  return 1
end

-- id owner ballot ttlMs channel: as renew, but only if the node has kept the lock since its vote. A
-- lock that was taken again has no meta, and a process that votes has forgotten nothing.
if verb == 'resume' then
  local id, owner, token, ttlMs, channel = unpack(ARGV, 2)
  ttlMs = tonumber(ttlMs)
  if holder ~= owner and (holder or node.foreignLock()) then return { 'H' } end
  local _, kind, rest = readBallot()
  local revoked = revocation(kind, rest, owner)
  if revoked then return revoked end
  local refusal = node.admission(id, ttlMs)
  if refusal then return refusal end
  local voted, first = match(rest, '^(%S+) (%d+) %d+ %d+ %S+ .')
  if not holder or voted ~= owner or first ~= token then return { 'N' } end
  return prolong(node, lock, ballot, owner, tonumber(token), ttlMs, channel)
end

-- token reason: ends the lease whose span has this token, or drops such a mark; as `release`
if verb == 'revoke' then
  local token, reason = unpack(ARGV, 2)
  local stored, kind, rest = readBallot()
  local owner, first, span, _, channel = match(rest, '^(%S+) (%d+) (%d+) (%d+) (%S+)')
  local turn = kind ~= 'R' and kind ~= 'V' and first and token - first
  if not turn or turn < 0 or turn - span >= 0 or holder ~= owner then
    return node.absence()
  end
  call('DEL', lock)
  local word = 'x ' .. owner .. ' ' .. first .. ' ' .. reason
  if match(channel, '^holdfast@') then call('PUBLISH', channel, word) end
  node.wakeNext('', '', 0)
  node.writeBallot(max(stored, tonumber(first) + 1), ' V ' .. owner .. ' ' .. reason)
  return 1
end

-- Changes nothing: leftMs holder ballot, and the queue with its times
if verb == 'look' then
  local queue = waiters and call('ZRANGE', waiters, 0, -1, 'WITHSCORES') or {}
  foreign = node.foreignLock()
  local value = foreign and 'a ' .. foreign[3] or holder or ''
  return { call('PTTL', lock), value, node.raw or '', queue, node.foreignQueue }
end

-- The other verbs are about the node, not about a name.
local known
known, foreign = node.readMarker()
if foreign then return foreign end

-- Tells the process of this node, its uptime, its clock, and its marker.
if verb == 'survey' then
  local answer = { node.server('run_id'), whole(node.uptimeMs() / 1000), whole(node.nowUs) }
  if IS_SINGLE_SERVER or not known then return answer end
  local floor = known.floor and whole(known.floor) or ''
  for _, one in ipairs({ known.run, known.set, whole(known.from), whole(known.max), floor,
    whole(known.top), whole(known.long), whole(known.till) }) do
    table.insert(answer, one)
  end
  return answer
end

-- run set how maxMs restMs floor: writes the marker; 1, or 0 where it does not apply any more. How
-- is "join" (the node votes after the longest lease), "boot" (after the longest lease, counted from
-- the start of this process) or "now". Longer leases live for restMs at most. An empty floor is not
-- known yet.
if verb == 'mark' then
  local run, set, how, maxMs, restMs, floor = unpack(ARGV, 2)
  if node.server('run_id') ~= run then return 0 end
  maxMs = tonumber(maxMs)
  local over = nowMs + tonumber(restMs)
  if known and known.run == run and known.set ~= set and how ~= 'now' then return 0 end
  local isAwake = known and known.from <= nowMs and known.floor
  if known and known.run == run and known.set == set and (how ~= 'now' or isAwake) then
    local more = max(0, maxMs - known.max)
    if known.from > nowMs then known.from = max(known.from + more, over) end
    known.max = known.max + more
    node.writeMarker(known)
    return 1
  end
  local since = how == 'join' and nowMs or nowMs - node.uptimeMs()
  local from = how == 'now' and 0 or max(since + maxMs, over)
  -- An older floor, from a snapshot, still holds.
  local least = known and known.floor or 0
  local top = max(least, known and known.top or 0)
  floor = tonumber(floor)
  if floor then
    floor = max(least, floor, node.nowUs)
    top = max(top, floor)
  end
  local long, till = known and known.long or 0, known and known.till or 0
  node.writeMarker({
    run = run, set = set, from = from, max = maxMs, long = long, till = till, floor = floor,
    top = top,
  })
  return 1
end

-- run floor: a node that joined may vote from now on; 1, or 0 where it may not
if verb == 'admit' then
  local run, floor = unpack(ARGV, 2)
  if not known or node.server('run_id') ~= run or known.run ~= run or known.floor then return 0 end
  if known.from > nowMs then return 0 end
  known.floor = max(tonumber(floor), known.top)
  known.top = known.floor
  node.writeMarker(known)
  return 1
end

-- set ttlMs forMs: leases may be ttlMs long for the next forMs; 1, or 0 for another set or process
if verb == 'raise' then
  local set, ttlMs, forMs = unpack(ARGV, 2)
  if not known or known.run ~= node.server('run_id') or known.set ~= set then return 0 end
  ttlMs = tonumber(ttlMs)
  if ttlMs <= known.max then return 1 end
  -- All longer leases that were announced before have ended.
  if known.till + known.long <= nowMs then known.long, known.till = 0, 0 end
  known.long = max(known.long, ttlMs)
  known.till = max(known.till, nowMs + forMs)
  node.writeMarker(known)
  return 1
end
