-- What a node does when it is asked: one verb a call, all or nothing. The frequent ones come first,
-- and no function is made for one that is not asked for.
--
-- in:       call sub match max verb nowUs nowMs lock ballot isNamed waiters hasLine strangeLine
--           holder raw whole runId told tell admission strange strangeLock load keep raiseTop
--           longest isPlain stand say pick DAY YEAR
-- commands: DEL INFO PEXPIRE PEXPIREAT PTTL PUBLISH SET ZRANGE ZREM
local function inTheWay(stored, text, rank)
  return { 'H', whole(stored), call('PTTL', lock), holder, text or '', rank, strangeLine }
end

-- No ballot that a client may propose is above the stored one: the name is closed here for good.
local function ahead(stored, known)
  if stored > max(nowUs + YEAR, known and known.top or 0) then return { 'X', ballot, 'ahead' } end
end

-- A node that may have forgotten says nothing about what it had.
local function absence()
  local known = told()
  return known and known.run == runId() and known.from <= nowMs and 0 or -1
end

local function recordKind() return hasLine and ' W' or ' H' end

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
  -- What is known of the holder stays for as long as the holder does.
  call('PEXPIREAT', ballot, whole(math.floor((max(nowUs, token) + 2 * DAY) / 1000)))
  return { 'G', leftMs }
end

local function revocation(kind, rest, owner)
  if kind ~= 'V' then return nil end
  local revoked, reason = match(rest, '^(%S+) (.*)$')
  if revoked == owner then return { 'V', reason } end
end

-- Whether the lock is kept for somebody else, who was woken, and for how long.
local function reserved(kind, rest, waiter)
  if kind ~= 'R' then return nil end
  local untilMs, who = match(rest, '^(%d+) (.*)$')
  local leftMs = tonumber(untilMs) - nowMs
  if leftMs > 0 and who ~= waiter then return leftMs end
end

-- Nothing is kept of a name whose ballot is not ours, so nothing is done for it.
local foreign = isNamed and strange()
if foreign then return foreign end

-- terms record id since: the last two only from who waits. The record is what is to be kept with
-- the ballot, from the ballot on. The terms are until when, in ms (13 digits), what the marker has
-- to say (17), the length of the owner (2), ttlMs. Since is left out where it is the ballot.
if verb == 'vote' then
  local terms, record, id, since = unpack(ARGV, 2)
  local start, owner, channel = match(record, '^(%d+) H (%S+) %d+ %d+ %d+ (%S+)')
  local token, ttlMs = tonumber(start), tonumber(sub(terms, 33))
  local waiter = id and channel .. '/' .. id
  since = since or start
  local refusal, known = admission(sub(terms, 15, 30), ttlMs, channel)
  refusal = refusal or strangeLock()
  if refusal then return refusal end
  local stored, kind, rest, text = load(known)
  refusal = ahead(stored, known)
  if refusal then return refusal end
  if holder and holder ~= owner then
    return inTheWay(stored, text, stand(waiter, since, kind, text))
  end
  local leftMs = not holder and reserved(kind, rest, waiter)
  if leftMs then
    return { 'R', whole(stored), leftMs, stand(waiter, since, kind, text), strangeLine }
  end
  if token <= stored then
    if holder and token == stored then return { 'G', call('PTTL', lock) } end
    return { 'L', whole(stored) }
  end
  if token > max(nowUs + YEAR, known.top) then return { 'A', whole(nowUs) } end
  call('SET', lock, owner, 'PX', ttlMs)
  keep(token, recordKind() .. sub(record, #start + 3))
  raiseTop(known, token)
  return 'G'
end

-- waiter since: looks, and enters the waiter
if verb == 'wait' then
  local waiter, since = unpack(ARGV, 2)
  local refusal = strangeLock()
  if refusal then return refusal end
  local known = told()
  local stored, kind, rest, text = load(known)
  refusal = ahead(stored, known)
  if refusal then return refusal end
  local rank = stand(waiter, since, kind, text)
  if holder then return inTheWay(stored, text, rank) end
  local leftMs = reserved(kind, rest, waiter)
  if leftMs then return { 'R', whole(stored), leftMs, rank, strangeLine } end
  return { 'O', whole(stored), rank, strangeLine }
end

-- waiter reserveMs: it waits no more; if it was just woken, the next one is, unless it is 0
if verb == 'leave' then
  local waiter, reserveMs = unpack(ARGV, 2)
  if waiters then call('ZREM', waiters, waiter) end
  if strangeLock() then return 1 end
  reserveMs = tonumber(reserveMs)
  local stored, kind, rest = load()
  if kind == 'R' and match(rest, '^%d+ (.*)$') == waiter and not holder then
    keep(stored, reserveMs > 0 and pick('', '', reserveMs) or ' W')
  end
  return 1
end

-- id owner ballot span ttlMs channel: never shortens; takes a free node again if it knows of
-- nothing newer
if verb == 'renew' then
  local id, owner, token, span, ttlMs, channel = unpack(ARGV, 2)
  token, ttlMs = tonumber(token), tonumber(ttlMs)
  if holder ~= owner and (holder or strangeLock()) then return { 'H' } end
  if holder then
    local known
    known, foreign = told()
    if foreign then return foreign end
    local maxMs = known and longest(known) or 0
    if maxMs < ttlMs then return { 'T', whole(maxMs) } end
    return prolong(owner, token, ttlMs, channel)
  end
  local stored, kind, rest, text = load()
  local revoked = revocation(kind, rest, owner)
  if revoked then return revoked end
  local refusal, known = admission(id, ttlMs, channel)
  if refusal then return refusal end
  -- A floor is no ballot: it says what may have been here, and the holder proves that it was not.
  if text and stored > token then return { 'N' } end
  call('SET', lock, owner, 'PX', ttlMs)
  local record = table.concat({ owner, whole(token), span, whole(nowMs), channel, '' }, ' ')
  keep(max(stored, token), recordKind() .. ' ' .. record)
  raiseTop(known, token)
  return { 'G', ttlMs, 1 }
end

-- id owner ballot ttlMs channel: as renew, but only what has been kept since the vote, without a
-- break: what was taken again has no meta, and a process that votes has forgotten nothing
if verb == 'resume' then
  local id, owner, token, ttlMs, channel = unpack(ARGV, 2)
  ttlMs = tonumber(ttlMs)
  if holder ~= owner and (holder or strangeLock()) then return { 'H' } end
  local _, kind, rest = load()
  local revoked = revocation(kind, rest, owner)
  if revoked then return revoked end
  local refusal = admission(id, ttlMs, channel)
  if refusal then return refusal end
  local voted, first = match(rest, '^(%S+) (%d+) %d+ %d+ %S+ .')
  if not holder or voted ~= owner or first ~= token then return { 'N' } end
  return prolong(owner, tonumber(token), ttlMs, channel)
end

-- owner ballot..' H ' closed reserveMs keepMs meta waiter since: closed is ballot + 1; keepMs
-- leaves a mark, waiter goes on waiting: from there on they may be left out
if verb == 'release' then
  local owner, start, _, reserveMs, keepMs, meta, waiter, since = unpack(ARGV, 2)
  local token = tonumber(match(start, '^%d+'))
  keepMs = tonumber(keepMs or 0)
  local isHeld = holder == owner
  if isHeld then call('DEL', lock) end
  local stored, kind, rest = load()
  stand(waiter, since)
  if waiter and isPlain(kind) then kind = 'W' end
  local text = kind == '' and '' or ' ' .. kind .. ' ' .. rest
  if isHeld and keepMs > 0 then
    local value = 'done:' .. owner
    call('SET', lock, value, 'PX', keepMs)
    local record = { value, whole(token), '01', whole(nowMs), '-', meta }
    text = ' D ' .. table.concat(record, ' ')
    if waiters then
      -- Those further back see the mark when they look by their own clocks.
      for _, other in ipairs(call('ZRANGE', waiters, 0, 255)) do say('w', other) end
      call('DEL', waiters)
    end
  elseif isHeld then
    text = pick(kind, rest, tonumber(reserveMs))
  end
  -- A ballot beyond all reason would close the name for as long.
  if token > nowUs + YEAR then token = 0 end
  keep(max(stored, token + 1), text)
  return isHeld and 1 or absence()
end

-- token reason: ends the lease, or drops the mark, that has this token among its own
if verb == 'revoke' then
  local token, reason = unpack(ARGV, 2)
  local stored, kind, rest = load()
  local owner, first, span, _, channel = match(rest, '^(%S+) (%d+) (%d+) (%d+) (%S+)')
  local turn = kind ~= 'R' and kind ~= 'V' and first and token - first
  if not turn or turn < 0 or turn - span >= 0 or holder ~= owner then
    return absence()
  end
  call('DEL', lock)
  local word = 'x ' .. owner .. ' ' .. first .. ' ' .. reason
  if match(channel, '^holdfast@') then call('PUBLISH', channel, word) end
  pick('', '', 0)
  keep(max(stored, tonumber(first) + 1), ' V ' .. owner .. ' ' .. reason)
  return 1
end

if verb == 'look' then
  local line = waiters and call('ZRANGE', waiters, 0, -1, 'WITHSCORES') or {}
  foreign = strangeLock()
  local value = foreign and 'a ' .. foreign[3] or holder or ''
  return { call('PTTL', lock), value, raw or '', line, strangeLine }
end

-- The verbs that follow are about the node, not about a name.
local known
known, foreign = told()
if foreign then return foreign end

-- What this node is, and what it was told.
if verb == 'survey' then
  local uptime = match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  local answer = { runId(), uptime, whole(nowUs) }
  if not known then return answer end
  local floor = known.floor and whole(known.floor) or ''
  for _, one in ipairs({ known.run, known.set, whole(known.from), whole(known.max), floor,
    whole(known.top), whole(known.long), whole(known.till) }) do
    table.insert(answer, one)
  end
  return answer
end

-- run set how maxMs restMs floor: how is "join" (votes after the longest lease), "boot" (after the
-- longest lease since this process began) or "now"; longer leases live for restMs at the most;
-- floor '' is yet to be learned
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
    tell(known)
    return 1
  end
  local uptime = tonumber(match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
  local since = how == 'join' and nowMs or nowMs - uptime * 1000
  local from = how == 'now' and 0 or max(since + maxMs, over)
  -- An older floor, of a snapshot, is as good as ever.
  local least = known and known.floor or 0
  local top = max(least, known and known.top or 0)
  floor = tonumber(floor)
  if floor then
    floor = max(least, floor, nowUs)
    top = max(top, floor)
  end
  local long, till = known and known.long or 0, known and known.till or 0
  tell({
    run = run, set = set, from = from, max = maxMs, long = long, till = till, floor = floor,
    top = top,
  })
  return 1
end

-- run floor: the time of a node that joined has come
if verb == 'admit' then
  local run, floor = unpack(ARGV, 2)
  if not known or runId() ~= run or known.run ~= run or known.floor then return 0 end
  if known.from > nowMs then return 0 end
  known.floor = max(tonumber(floor), known.top)
  known.top = known.floor
  tell(known)
  return 1
end

-- set ttlMs forMs: leases may be this long, for this time
if verb == 'raise' then
  local set, ttlMs, forMs = unpack(ARGV, 2)
  if not known or known.run ~= runId() or known.set ~= set then return 0 end
  ttlMs = tonumber(ttlMs)
  if ttlMs <= known.max then return 1 end
  -- All longer leases that were announced before are over.
  if known.till + known.long <= nowMs then known.long, known.till = 0, 0 end
  known.long = max(known.long, ttlMs)
  known.till = max(known.till, nowMs + forMs)
  tell(known)
  return 1
end
