-- What a node does when it is asked: one verb a call, all or nothing. The frequent ones come first,
-- and no function is made for one that is not asked for.
--
-- in:       call sub match max verb nowUs nowMs node lock ballot waiters holder whole runId
--           admission load keep raiseTop stand pick DAY YEAR
-- commands: DEL GET HMGET HSET INFO PEXPIRE PEXPIREAT PTTL PUBLISH SET ZRANGE ZREM
local function inTheWay(value, stored, text, rank)
  return { 'H', whole(stored), call('PTTL', lock), value, text or '', rank }
end

-- A node that may have forgotten says nothing about what it had.
local function absence()
  local fields = call('HMGET', node, 'run', 'from')
  local isSure = fields[1] and fields[1] == runId() and tonumber(fields[2]) <= nowMs
  return isSure and 0 or -1
end

-- Whether the lock is kept for somebody else, who was woken, and for how long.
local function reserved(kind, rest, waiter)
  if kind ~= 'R' then return nil end
  local untilMs, who = match(rest, '^(%d+) (.*)$')
  local leftMs = tonumber(untilMs) - nowMs
  if leftMs > 0 and who ~= waiter then return leftMs end
end

-- owner keepUntil..ttlMs record set waiter since: the last two only from who waits; record is what
-- is to be kept with the ballot, from the ballot on, keepUntil for how long: ten digits, in seconds
if verb == 'vote' then
  local owner, terms, record, set, waiter, since = unpack(ARGV, 2)
  local token, ttlMs = tonumber(match(record, '^%d+')), tonumber(sub(terms, 11))
  local refusal, floor, top = admission(set, ttlMs)
  if refusal then return refusal end
  local stored, kind, rest, text = load(floor)
  if holder and holder ~= owner then
    return inTheWay(holder, stored, text, stand(waiter, since))
  end
  local leftMs = not holder and reserved(kind, rest, waiter)
  if leftMs then
    return { 'R', whole(stored), leftMs, stand(waiter, since) }
  end
  if token <= stored then
    if holder and token == stored then return { 'G', call('PTTL', lock) } end
    return { 'L', whole(stored) }
  end
  if token > nowUs + YEAR then return { 'A', whole(nowUs) } end
  call('SET', lock, owner, 'PX', ttlMs)
  keep(token, match(record, ' .*'))
  raiseTop(top, token)
  return 'G'
end

-- waiter since: looks, and enters the waiter
if verb == 'wait' then
  local waiter, since = unpack(ARGV, 2)
  local stored, kind, rest, text = load(false)
  local value = call('GET', lock)
  local rank = stand(waiter, since)
  if value then return inTheWay(value, stored, text, rank) end
  local leftMs = reserved(kind, rest, waiter)
  if leftMs then return { 'R', whole(stored), leftMs, rank } end
  return { 'O', whole(stored), rank }
end

-- waiter reserveMs: it waits no more; if it was just woken, the next one is, unless it is 0
if verb == 'leave' then
  local waiter, reserveMs = unpack(ARGV, 2)
  call('ZREM', waiters, waiter)
  reserveMs = tonumber(reserveMs)
  local stored, kind, rest = load(false)
  if kind == 'R' and match(rest, '^%d+ (.*)$') == waiter and not call('GET', lock) then
    keep(stored, reserveMs > 0 and pick('', '', reserveMs) or '')
  end
  return 1
end

-- set owner ballot span ttlMs channel: never shortens; takes a free node again if it knows of
-- nothing newer
if verb == 'renew' then
  local set, owner, token, span, ttlMs, channel = unpack(ARGV, 2)
  token, ttlMs = tonumber(token), tonumber(ttlMs)
  local value = call('GET', lock)
  if value == owner then
    local maxMs = call('HMGET', node, 'max')[1] or '0'
    if tonumber(maxMs) < ttlMs then return { 'T', maxMs } end
    local leftMs = call('PTTL', lock)
    if leftMs < ttlMs then
      call('PEXPIRE', lock, ttlMs)
      leftMs = ttlMs
    end
    -- What is known of the holder stays for as long as the holder does.
    call('PEXPIREAT', ballot, whole(math.floor((max(nowUs, token) + 2 * DAY) / 1000)))
    return { 'G', leftMs }
  end
  if value then return { 'H' } end
  local stored, kind, rest, text = load(false)
  if kind == 'V' then
    local revoked, reason = match(rest, '^(%S+) (.*)$')
    if revoked == owner then return { 'V', reason } end
  end
  local refusal, floor, top = admission(set, ttlMs)
  if refusal then return refusal end
  -- A floor is no ballot: it says what may have been here, and the holder proves that it was not.
  if text and stored > token then return { 'N' } end
  call('SET', lock, owner, 'PX', ttlMs)
  local record = table.concat({ owner, whole(token), span, whole(nowMs), channel, '' }, ' ')
  keep(max(stored, token), ' H ' .. record)
  raiseTop(top, token)
  return { 'G', ttlMs, 1 }
end

-- owner ballot..' H ' closed reserveMs keepMs meta waiter since: closed is ballot + 1; keepMs
-- leaves a mark, waiter goes on waiting: from there on they may be left out
if verb == 'release' then
  local owner, start, _, reserveMs, keepMs, meta, waiter, since = unpack(ARGV, 2)
  local token = tonumber(match(start, '^%d+'))
  keepMs = tonumber(keepMs or 0)
  local isHeld = holder == owner
  if isHeld then call('DEL', lock) end
  local stored, kind, rest = load(false)
  local text = kind == '' and '' or ' ' .. kind .. ' ' .. rest
  stand(waiter, since)
  if isHeld and keepMs > 0 then
    local value = 'done:' .. owner
    call('SET', lock, value, 'PX', keepMs)
    local record = { value, whole(token), '01', whole(nowMs), '-', meta }
    text = ' D ' .. table.concat(record, ' ')
    for _, other in ipairs(call('ZRANGE', waiters, 0, -1)) do
      local channel, id = match(other, '^(.*)/(.*)$')
      call('PUBLISH', channel, 'w ' .. id)
    end
    call('DEL', waiters)
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
  local stored, kind, rest = load(false)
  local owner, first, span, _, channel = match(rest, '^(%S+) (%d+) (%d+) (%d+) (%S+)')
  local turn = (kind == 'H' or kind == 'D') and first and token - first
  if not turn or turn < 0 or turn - span >= 0 or call('GET', lock) ~= owner then
    return absence()
  end
  call('DEL', lock)
  local word = 'x ' .. owner .. ' ' .. first .. ' ' .. reason
  if channel ~= '-' then call('PUBLISH', channel, word) end
  pick('', '', 0)
  keep(max(stored, tonumber(first) + 1), ' V ' .. owner .. ' ' .. reason)
  return 1
end

if verb == 'look' then
  local line = call('ZRANGE', waiters, 0, -1, 'WITHSCORES')
  return { call('GET', lock) or '', call('PTTL', lock), call('GET', ballot) or '', line }
end

-- What this node is, and what it was told.
if verb == 'survey' then
  local uptime = match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  local fields = call('HMGET', node, 'run', 'set', 'from', 'max', 'floor', 'top')
  for at = 1, 6 do fields[at] = fields[at] or '' end
  return { runId(), uptime, whole(nowUs), unpack(fields) }
end

-- run set how maxMs floor: how is "join" (votes after the longest lease), "boot" (after the longest
-- lease since this process began) or "now"; floor '' is yet to be learned
if verb == 'mark' then
  local run, set, how, maxMs, floor = unpack(ARGV, 2)
  if runId() ~= run then return 0 end
  maxMs = tonumber(maxMs)
  local fields = call('HMGET', node, 'run', 'set', 'from', 'max', 'floor', 'top')
  if fields[1] == run and fields[2] ~= set and how ~= 'now' then return 0 end
  local isAwake = fields[3] and tonumber(fields[3]) <= nowMs and fields[5] ~= ''
  if fields[1] == run and fields[2] == set and (how ~= 'now' or isAwake) then
    local more = max(0, maxMs - tonumber(fields[4]))
    call('HSET', node, 'max', whole(fields[4] + more))
    if more > 0 and tonumber(fields[3]) > nowMs then
      call('HSET', node, 'from', whole(fields[3] + more))
    end
    return 1
  end
  local uptime = tonumber(match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
  local from = 0
  if how == 'join' then from = nowMs + maxMs end
  if how == 'boot' then from = nowMs - uptime * 1000 + maxMs end
  -- An older floor, of a snapshot, is as good as ever.
  local least = tonumber(fields[5] or '') or 0
  local top = max(least, tonumber(fields[6] or '') or 0)
  if floor ~= '' then
    floor = whole(max(least, tonumber(floor), nowUs))
    top = max(top, tonumber(floor))
  end
  call('HSET', node, 'run', run, 'set', set, 'from', whole(from), 'max', whole(maxMs),
    'floor', floor, 'top', whole(top))
  return 1
end

-- run floor: the time of a node that joined has come
if verb == 'admit' then
  local run, floor = unpack(ARGV, 2)
  local fields = call('HMGET', node, 'run', 'from', 'floor', 'top')
  if runId() ~= run or fields[1] ~= run or fields[3] ~= '' then return 0 end
  if tonumber(fields[2]) > nowMs then return 0 end
  floor = max(tonumber(floor), tonumber(fields[4]))
  call('HSET', node, 'floor', whole(floor), 'top', whole(floor))
  return 1
end

-- set ttlMs: leases may be this long from now on
if verb == 'raise' then
  local set, ttlMs = unpack(ARGV, 2)
  local fields = call('HMGET', node, 'run', 'set', 'max')
  if not fields[1] or fields[1] ~= runId() or fields[2] ~= set then return 0 end
  call('HSET', node, 'max', whole(max(tonumber(fields[3]), tonumber(ttlMs))))
  return 1
end
