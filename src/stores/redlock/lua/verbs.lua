-- The verbs of a node: one in each call, all or nothing. Frequent verbs come first. No verb is a
-- function, because a script makes its functions anew for each call.
--
-- in:       call sub match max verb nowUs nowMs lock ballot isNamed waiters hasQueue foreignQueue
--           holder raw whole runId readMarker writeMarker admission foreignBallot foreignLock
--           readBallot writeBallot raiseTop longest isPlain enqueue notify wakeNext DAY YEAR
-- commands: DEL INFO PEXPIRE PEXPIREAT PTTL PUBLISH SET ZRANGE ZREM
-- The answer that another owner holds the lock.
local function held(stored, text, rank)
  return { 'H', whole(stored), call('PTTL', lock), holder, text or '', rank, foreignQueue }
end

-- The refusal if the stored ballot is above all ballots that a client may propose, or nil.
local function ahead(stored, known)
  if stored > max(nowUs + YEAR, known and known.top or 0) then return { 'X', ballot, 'ahead' } end
end

-- The answer that nothing is held: 0, or -1 if the node may have forgotten.
local function absence()
  if IS_LONE then return 0 end
  local known = readMarker()
  return known and known.run == runId() and known.from <= nowMs and 0 or -1
end

local function recordKind() return hasQueue and ' W' or ' H' end

-- The record names the channel that hears of a revocation. After a resume that is the channel of
-- another client; a node that missed the resume learns it from the next renewal.
local function prolong(owner, token, ttlMs, channel)
  local head, voted, heard, tail =
    match(raw or '', '^(%d+ [HW] (%S+) %d+ %d+ %d+ )(%S+)(.*)$')
  if voted == owner and heard ~= channel then
    call('SET', ballot, head .. channel .. tail, 'KEEPTTL')
  end
  local leftMs = call('PTTL', lock)
  if leftMs < ttlMs then
    call('PEXPIRE', lock, ttlMs)
    leftMs = ttlMs
  end
  -- The record of the holder stays for as long as the holder does. By plain commands, the record of
  -- a mark is written before the mark: its longer time is not cut.
  if head or not match(raw or '', '^%d+ D ') then
    call('PEXPIREAT', ballot, whole(math.floor((max(nowUs, token) + 2 * DAY) / 1000)))
  end
  return { 'G', leftMs }
end

local function revocation(kind, rest, owner)
  if kind ~= 'V' then return nil end
  local revoked, reason = match(rest, '^(%S+) (.*)$')
  if revoked == owner then return { 'V', reason } end
end

-- For how long the lock is still reserved for another waiter that was woken, or nil.
local function reserved(kind, rest, waiter)
  if kind ~= 'R' then return nil end
  local untilMs, woken = match(rest, '^(%d+) (.*)$')
  local leftMs = tonumber(untilMs) - nowMs
  if leftMs > 0 and woken ~= waiter then return leftMs end
end

-- Nothing is kept of a name with a foreign ballot, so every verb on it is refused.
local foreign = isNamed and foreignBallot()
if foreign then return foreign end

-- terms record owner since: TERMS and RECORD. Only a waiter sends since, and only if it differs
-- from the ballot.
if verb == 'vote' then
  local terms, record, owner, since = unpack(ARGV, 2)
  local start, channel = match(record, '^(%d+) H %S+ %d+ %d+ %d+ (%S+)')
  local token, ttlMs = tonumber(start), tonumber(sub(terms, TERMS.ttl))
  local id = match(sub(terms, TERMS.waiter), '%S+')
  local waiter = id and channel .. '/' .. id
  since = since or start
  local refusal, known = admission(sub(terms, TERMS.id), ttlMs)
  refusal = refusal or foreignLock()
  if refusal then return refusal end
  local stored, kind, rest, text = readBallot(known)
  refusal = ahead(stored, known)
  if refusal then return refusal end
  if holder and holder ~= owner then
    return held(stored, text, enqueue(waiter, since, kind, text))
  end
  local leftMs = not holder and reserved(kind, rest, waiter)
  if leftMs then
    return { 'R', whole(stored), leftMs, enqueue(waiter, since, kind, text), foreignQueue }
  end
  if token <= stored then
    if holder and token == stored then return { 'G', call('PTTL', lock) } end
    -- The floor of a lone server follows its clock. A ballot above the time will be above it.
    return { 'L', whole(text and stored or IS_LONE and nowUs or stored) }
  end
  if token > max(nowUs + YEAR, known.top) then return { 'A', whole(nowUs) } end
  call('SET', lock, owner, 'PX', ttlMs)
  writeBallot(token, recordKind() .. sub(record, #start + 3))
  raiseTop(known, token)
  return 1
end

-- waiter since: looks at the name, and adds the waiter to the queue
if verb == 'wait' then
  local waiter, since = unpack(ARGV, 2)
  local refusal = foreignLock()
  if refusal then return refusal end
  local known = readMarker()
  local stored, kind, rest, text = readBallot(known)
  refusal = ahead(stored, known)
  if refusal then return refusal end
  local rank = enqueue(waiter, since, kind, text)
  if holder then return held(stored, text, rank) end
  local leftMs = reserved(kind, rest, waiter)
  if leftMs then return { 'R', whole(stored), leftMs, rank, foreignQueue } end
  return { 'O', whole(stored), rank, foreignQueue }
end

-- waiter reserveMs: the waiter leaves the queue. If it was woken last, the next waiter is woken,
-- unless reserveMs is 0.
if verb == 'leave' then
  local waiter, reserveMs = unpack(ARGV, 2)
  if waiters then call('ZREM', waiters, waiter) end
  if foreignLock() then return 1 end
  reserveMs = tonumber(reserveMs)
  local stored, kind, rest = readBallot()
  if kind == 'R' and match(rest, '^%d+ (.*)$') == waiter and not holder then
    writeBallot(stored, reserveMs > 0 and wakeNext('', '', reserveMs) or ' W')
  end
  return 1
end

-- id owner ballot span ttlMs channel: never shortens a lease. If the lock is free here, and the
-- node knows no newer ballot, the lock is taken again.
if verb == 'renew' then
  local id, owner, token, span, ttlMs, channel = unpack(ARGV, 2)
  token, ttlMs = tonumber(token), tonumber(ttlMs)
  if holder ~= owner and (holder or foreignLock()) then return { 'H' } end
  if holder then
    local known
    known, foreign = readMarker()
    if foreign then return foreign end
    local maxMs = known and longest(known) or 0
    if maxMs < ttlMs then return { 'T', whole(maxMs) } end
    return prolong(owner, token, ttlMs, channel)
  end
  local stored, kind, rest, text = readBallot()
  local revoked = revocation(kind, rest, owner)
  if revoked then return revoked end
  -- No other node can prove that the lease went on.
  if IS_LONE then return { 'N' } end
  local refusal, known = admission(id, ttlMs)
  if refusal then return refusal end
  -- Only a ballot counts, not a floor: a floor says which ballots may have been here, and the
  -- holder proves that they were not.
  if text and stored > token then return { 'N' } end
  call('SET', lock, owner, 'PX', ttlMs)
  local record = table.concat({ owner, whole(token), span, whole(nowMs), channel, '' }, ' ')
  writeBallot(max(stored, token), recordKind() .. ' ' .. record)
  raiseTop(known, token)
  return { 'G', ttlMs, 1 }
end

-- id owner ballot ttlMs channel: as renew, but only if the node has kept the lock since its vote. A
-- lock that was taken again has no meta, and a process that votes has forgotten nothing.
if verb == 'resume' then
  local id, owner, token, ttlMs, channel = unpack(ARGV, 2)
  ttlMs = tonumber(ttlMs)
  if holder ~= owner and (holder or foreignLock()) then return { 'H' } end
  local _, kind, rest = readBallot()
  local revoked = revocation(kind, rest, owner)
  if revoked then return revoked end
  local refusal = admission(id, ttlMs)
  if refusal then return refusal end
  local voted, first = match(rest, '^(%S+) (%d+) %d+ %d+ %S+ .')
  if not holder or voted ~= owner or first ~= token then return { 'N' } end
  return prolong(owner, tonumber(token), ttlMs, channel)
end

-- start closed reserveMs keepMs meta waiter since: start is the RECORD up to the space behind the
-- owner, closed is ballot + 1. keepMs leaves a mark, waiter goes on waiting. Arguments from keepMs
-- on may be left out.
if verb == 'release' then
  local start, _, reserveMs, keepMs, meta, waiter, since = unpack(ARGV, 2)
  local token, owner = match(start, '^(%d+) H (%S+) $')
  token = tonumber(token)
  keepMs = tonumber(keepMs or 0)
  -- A request that was sent again finds the mark that it left.
  if keepMs > 0 and holder == 'done:' .. owner then return 1 end
  local isHeld = holder == owner
  if isHeld then call('DEL', lock) end
  local stored, kind, rest = readBallot()
  enqueue(waiter, since)
  if waiter and isPlain(kind) then kind = 'W' end
  local text = kind == '' and '' or ' ' .. kind .. ' ' .. rest
  -- The record of a mark is kept for longer than the mark, also when it is written again. Its own
  -- expiry tells for how long: by plain commands, the key gets the mark after the record.
  local leastMs = kind == 'D' and not isHeld and call('PTTL', ballot) or nil
  if isHeld and keepMs > 0 then
    leastMs = keepMs + DAY / 1000
    local value = 'done:' .. owner
    call('SET', lock, value, 'PX', keepMs)
    local record = { value, whole(token), '01', whole(nowMs), '-', meta }
    text = ' D ' .. table.concat(record, ' ')
    if waiters then
      -- Waiters behind these see the mark when they look by their own clocks.
      for _, other in ipairs(call('ZRANGE', waiters, 0, 255)) do notify('w', other) end
      call('DEL', waiters)
    end
  elseif isHeld then
    text = wakeNext(kind, rest, tonumber(reserveMs))
  end
  -- A ballot so far ahead would close the name until then, if it is not the ballot of the name.
  if token > max(nowUs + YEAR, stored) then token = 0 end
  writeBallot(max(stored, token + 1), text, leastMs)
  return isHeld and 1 or absence()
end

-- token reason: ends the lease whose span has this token, or drops such a mark
if verb == 'revoke' then
  local token, reason = unpack(ARGV, 2)
  local stored, kind, rest = readBallot()
  local owner, first, span, _, channel = match(rest, '^(%S+) (%d+) (%d+) (%d+) (%S+)')
  local turn = kind ~= 'R' and kind ~= 'V' and first and token - first
  if not turn or turn < 0 or turn - span >= 0 or holder ~= owner then
    return absence()
  end
  call('DEL', lock)
  local word = 'x ' .. owner .. ' ' .. first .. ' ' .. reason
  if match(channel, '^holdfast@') then call('PUBLISH', channel, word) end
  wakeNext('', '', 0)
  writeBallot(max(stored, tonumber(first) + 1), ' V ' .. owner .. ' ' .. reason)
  return 1
end

if verb == 'look' then
  local queue = waiters and call('ZRANGE', waiters, 0, -1, 'WITHSCORES') or {}
  foreign = foreignLock()
  local value = foreign and 'a ' .. foreign[3] or holder or ''
  return { call('PTTL', lock), value, raw or '', queue, foreignQueue }
end

-- The other verbs are about the node, not about a name.
local known
known, foreign = readMarker()
if foreign then return foreign end

-- The process of this node, its clock, and its marker.
if verb == 'survey' then
  local uptime = match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  local answer = { runId(), uptime, whole(nowUs) }
  if IS_LONE or not known then return answer end
  local floor = known.floor and whole(known.floor) or ''
  for _, one in ipairs({ known.run, known.set, whole(known.from), whole(known.max), floor,
    whole(known.top), whole(known.long), whole(known.till) }) do
    table.insert(answer, one)
  end
  return answer
end

-- run set how maxMs restMs floor: writes the marker. How is "join" (the node votes after the
-- longest lease), "boot" (after the longest lease, counted from the start of this process) or
-- "now". Longer leases live for restMs at the most. An empty floor is yet to be learned.
if verb == 'mark' then
  local run, set, how, maxMs, restMs, floor = unpack(ARGV, 2)
  if runId() ~= run then return 0 end
  maxMs = tonumber(maxMs)
  local over = nowMs + tonumber(restMs)
  if known and known.run == run and known.set ~= set and how ~= 'now' then return 0 end
  local isAwake = known and known.from <= nowMs and known.floor
  if known and known.run == run and known.set == set and (how ~= 'now' or isAwake) then
    local more = max(0, maxMs - known.max)
    if known.from > nowMs then known.from = max(known.from + more, over) end
    known.max = known.max + more
    writeMarker(known)
    return 1
  end
  local uptime = tonumber(match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
  local since = how == 'join' and nowMs or nowMs - uptime * 1000
  local from = how == 'now' and 0 or max(since + maxMs, over)
  -- An older floor, from a snapshot, still holds.
  local least = known and known.floor or 0
  local top = max(least, known and known.top or 0)
  floor = tonumber(floor)
  if floor then
    floor = max(least, floor, nowUs)
    top = max(top, floor)
  end
  local long, till = known and known.long or 0, known and known.till or 0
  writeMarker({
    run = run, set = set, from = from, max = maxMs, long = long, till = till, floor = floor,
    top = top,
  })
  return 1
end

-- run floor: a node that joined may vote from now on
if verb == 'admit' then
  local run, floor = unpack(ARGV, 2)
  if not known or runId() ~= run or known.run ~= run or known.floor then return 0 end
  if known.from > nowMs then return 0 end
  known.floor = max(tonumber(floor), known.top)
  known.top = known.floor
  writeMarker(known)
  return 1
end

-- set ttlMs forMs: leases may be ttlMs long for the next forMs
if verb == 'raise' then
  local set, ttlMs, forMs = unpack(ARGV, 2)
  if not known or known.run ~= runId() or known.set ~= set then return 0 end
  ttlMs = tonumber(ttlMs)
  if ttlMs <= known.max then return 1 end
  -- All longer leases that were announced before have ended.
  if known.till + known.long <= nowMs then known.long, known.till = 0, 0 end
  known.long = max(known.long, ttlMs)
  known.till = max(known.till, nowMs + forMs)
  writeMarker(known)
  return 1
end
