// Written by scripts/embed-lua.mjs from lua/*.lua: change those, and run it.
export const SCRIPT: string = `local call, try, sub = redis.call, redis.pcall, string.sub
local clock, index, size = call('TIME'), KEYS[1], #KEYS - 1
local nowText = string.format('%s%06d', clock[1], clock[2])
if size == 1 and not ARGV[2] and clock[2] % 256 ~= 0 then
  local command, key = ARGV[1], KEYS[2]
  local operation = sub(command, 1, 1)
  if operation == 'X' or operation == 'x' then
    if nowText <= sub(command, 2, 17) and nowText > sub(command, 18, 33) then
      local lifeMs = string.match(command, '^%d+', 34)
      local value = nowText .. 'f' .. sub(command, 35 + #lifeMs)
      local done = try('SET', key, value, 'NX', 'PX', lifeMs)
      if done and done.ok then
        if call('ZADD', index, 'GT', 'CH', nowText, '', nowText, key) == 2 then
          return tonumber(nowText)
        end
        call('DEL', key)
      end
    end
  elseif operation == 'r' then
    local owner, value = sub(command, 2), try('GET', key)
    if value and not value.err and sub(value, 17, 18 + #owner) == 'f' .. owner .. ' ' then
      local now = tonumber(nowText)
      if sub(value, 1, 16) + string.match(value, '^%d+', 19 + #owner) > now then
        call('DEL', key)
        call('ZREM', index, key)
        return now
      end
    end
  end
end
local now, flags, format = tonumber(nowText), tonumber(ARGV[size + 1] or 0), string.format
local replies, turn = { nowText }, 1
local apply, last, isRaised, pending, motion
local function raise(token)
  if not last then last = tonumber(call('ZSCORE', index, '') or 0) end
  if token > last then
    last, isRaised = token, true
  end
  return last
end
local function list(key, isUsed)
  pending = pending or {}
  pending[key] = isUsed
end
local function endMs(untilUs) return math.ceil(untilUs / 1000) + 100 end
local function moving()
  if motion == nil then
    local answer = flags % 2 == 1 and try('EXISTS', index .. '?', index .. '!')
    motion = type(answer) == 'table' and answer.err
  end
  return motion
end
local function leanAcquire(command, key)
  if nowText > sub(command, 2, 17) or nowText <= sub(command, 18, 33) then return nil end
  local lifeMs, head = string.match(command, '^%d+', 34), nowText .. 'f'
  local isLater = raise(0) >= now
  if isLater then head = nowText .. '+' .. format('%016.0f', last + 1) end
  local done = try('SET', key, head .. sub(command, 35 + #lifeMs), 'NX', 'PX', lifeMs)
  if not done then return nil end
  if done.err then return '!' .. done.err end
  raise(isLater and last + 1 or now)
  list(key, true)
  return isLater and 'G' .. format('%016.0f', last) or 'G'
end
local function own(key, owner)
  local value = try('GET', key)
  if not value or value.err then return nil, not value end
  local granted, form = sub(value, 1, 16), sub(value, 17, 17)
  local start = form == 'f' and 18 or form == '+' and 34 or 50
  if sub(value, start, start + #owner) ~= owner .. ' ' then return nil end
  local token, expiry = form == 'f' and granted or sub(value, 18, 33), nil
  if start == 50 then
    expiry, token, granted = tonumber(granted), sub(value, 17, 32), sub(value, 33, 48)
  else
    expiry = granted + string.match(value, '^%d+', start + #owner + 1)
  end
  if expiry <= now then return nil end
  return { expiry = expiry, token = token, granted = granted, body = sub(value, start) }
end
local function leanRelease(owner, key)
  local mine, isFree = own(key, owner)
  if isFree then return 'r' end
  if not mine then return nil end
  call('DEL', key)
  list(key, false)
  return 'R'
end
local function leanRenew(command, key)
  local ttl = string.match(command, '^%d+', 34)
  if nowText > sub(command, 2, 17) then return nil end
  local mine = own(key, sub(command, 35 + #ttl))
  if not mine then return nil end
  raise(tonumber(sub(command, 18, 33)))
  local expiry = math.max(mine.expiry, now + ttl)
  local value = format('%016.0f', expiry) .. mine.token .. mine.granted .. 'c' .. mine.body
  local untilMs = endMs(expiry)
  if try('SET', key, value, 'PXAT', untilMs).err then
    call('DEL', key)
    call('SET', key, value, 'PXAT', untilMs)
  end
  return 'N' .. format('%.0f', expiry - now) .. ' 0 ' .. mine.token .. ' 1'
end
local function lean(command, key)
  local operation = sub(command, 1, 1)
  if operation == 'x' or operation == 'X' then return leanAcquire(command, key) end
  if operation == 'r' then return leanRelease(sub(command, 2), key) end
  if operation == 'n' then return leanRenew(command, key) end
end
while turn <= size do
  local reply = lean(ARGV[turn], KEYS[turn + 1])
  if not reply then
    if not apply then
      apply = (function()
local CHUNK = 2000
local BODY = '^(%S+) (%d+) (%S+) (%S) (%d+) (%d+) (%d+) (%d+) (%d+) '
local function digits(number) return string.format('%016.0f', number) end
local function parseBody(entry, body)
  local _, stop, owner, ttl, client, mode, weight, limit, claim, span, touch =
    string.find(body, BODY)
  entry.body, entry.owner, entry.client, entry.mode = body, owner, client, mode
  entry.weight, entry.limit, entry.ttl = tonumber(weight), tonumber(limit), tonumber(ttl)
  entry.claim, entry.span, entry.touch = tonumber(claim), tonumber(span), tonumber(touch)
  entry.meta = sub(body, stop + 1)
  return entry
end
local function parseHolder(text)
  local first, form = tonumber(sub(text, 1, 16)), sub(text, 17, 17)
  if form == 'f' or form == '+' then
    local token = form == '+' and tonumber(sub(text, 18, 33)) or first
    local entry = { granted = first, token = token, confirmed = true }
    parseBody(entry, sub(text, form == '+' and 34 or 18))
    entry.expiry = first + entry.ttl
    return entry
  end
  local entry = {
    expiry = first,
    token = tonumber(sub(text, 17, 32)),
    granted = tonumber(sub(text, 33, 48)),
    confirmed = sub(text, 49, 49) == 'c',
  }
  return parseBody(entry, sub(text, 50))
end
local function formatHolder(entry)
  local confirmed = entry.confirmed and 'c' or 'u'
  local times = digits(entry.expiry) .. digits(entry.token) .. digits(entry.granted)
  return times .. confirmed .. entry.body
end
local function parseWaiter(text)
  local since, order = sub(text, 1, 16), sub(text, 17, 32)
  return parseBody({ since = tonumber(since), order = order }, sub(text, 33))
end
local function companion(state, letter) return index .. letter .. state.suffix end
local function load(key)
  local state = {
    key = key,
    suffix = sub(key, #index + 1),
    fields = {},
    closed = {},
    shared = {},
    queued = {},
    count = 0,
    weight = 0,
    claims = 0,
    limits = {},
    needed = 0,
  }
  local fields = try('HMGET', key, 'x', 's', 'n', 'o', 'm', 't', 'u')
  if fields.err then
    if sub(fields.err, 1, 9) ~= 'WRONGTYPE' then error(fields.err) end
    fields = { call('GET', key) }
    state.lean = true
  end
  state.exists = fields[1] or fields[7]
  state.exclusive = fields[1] and parseHolder(fields[1]) or nil
  if fields[2] then
    local count, weight, claims, limits = string.match(fields[2], '^(%d+) (%d+) (%d+)(.*)$')
    state.count, state.weight, state.claims = tonumber(count), tonumber(weight), tonumber(claims)
    for limit, holders in string.gmatch(limits, ' (%d+):(%d+)') do
      state.limits[limit] = tonumber(holders)
    end
  end
  state.waiting, state.order = tonumber(fields[3] or 0), tonumber(fields[4] or 0)
  if fields[5] then
    local untilUs = tonumber(sub(fields[5], 1, 16))
    local token, meta = tonumber(sub(fields[5], 17, 32)), sub(fields[5], 33)
    state.mark = { untilUs = untilUs, token = token, meta = meta }
  end
  state.buried, state.untilMs = tonumber(fields[6] or 0), tonumber(fields[7] or 0)
  return state
end
local function write(state, field, value) state.fields[field] = value end
local function need(state, untilUs)
  if untilUs > state.needed then state.needed = untilUs end
end
local function writeOccupancy(state)
  local parts = {}
  for limit, holders in pairs(state.limits) do
    parts[#parts + 1] = ' ' .. limit .. ':' .. holders
  end
  local weight = string.format('%.0f', state.weight)
  local sums = state.count .. ' ' .. weight .. ' ' .. state.claims
  write(state, 's', sums .. table.concat(parts))
end
local function writeFields(state)
  local writes, drops = {}, {}
  for field, value in pairs(state.fields) do
    if value then
      writes[#writes + 1] = field
      writes[#writes + 1] = value
    else
      drops[#drops + 1] = field
    end
  end
  for first = 1, #drops, CHUNK do
    call('HDEL', state.key, unpack(drops, first, math.min(first + CHUNK - 1, #drops)))
  end
  for first = 1, #writes, CHUNK do
    call('HSET', state.key, unpack(writes, first, math.min(first + CHUNK - 1, #writes)))
  end
end
local function commit(state)
  local key, isHeld = state.key, state.exclusive or state.count > 0
  if not (isHeld or state.waiting > 0 or state.mark or state.buried > now) then
    if not state.exists then return end
    local e, l = companion(state, 'e'), companion(state, 'l')
    call('DEL', key, e, l, companion(state, 'r'), companion(state, 'g'))
    return list(key, false)
  end
  if not next(state.fields) and state.needed == 0 then return end
  if state.lean then
    call('DEL', key)
    if state.exclusive then
      write(state, 'x', formatHolder(state.exclusive))
      need(state, state.exclusive.expiry)
    end
  end
  local untilMs = math.max(state.untilMs, endMs(state.needed))
  local isLonger = untilMs > state.untilMs
  if not (isHeld or state.waiting > 0 or state.mark) then untilMs = endMs(state.buried) end
  if untilMs ~= state.untilMs then write(state, 'u', untilMs) end
  writeFields(state)
  if untilMs ~= state.untilMs then call('PEXPIREAT', key, untilMs) end
  if isLonger then list(key, true) end
  if state.count > 0 and (isLonger or state.isShared) then
    call('PEXPIREAT', companion(state, 'e'), untilMs)
  end
  if state.waiting > 0 and (isLonger or state.isQueued) then
    call('PEXPIREAT', companion(state, 'l'), untilMs)
    call('PEXPIREAT', companion(state, 'r'), untilMs)
    call('PEXPIREAT', companion(state, 'g'), untilMs)
  end
end
local function holder(state, owner)
  local exclusive = state.exclusive
  if exclusive and exclusive.owner == owner then return exclusive end
  if state.count == 0 then return nil end
  if state.shared[owner] == nil then
    local text = call('HGET', state.key, 'h' .. owner)
    state.shared[owner] = text and parseHolder(text)
  end
  return state.shared[owner] or nil
end
local function expiryMember(entry) return digits(entry.token) .. entry.owner end
local function eachHolder(state)
  if state.exclusive then return { state.exclusive } end
  if state.count == 0 then return {} end
  local members = call('ZRANGE', companion(state, 'e'), 0, -1)
  table.sort(members)
  for place, member in ipairs(members) do
    members[place] = holder(state, sub(member, 17))
  end
  return members
end
local function nextToExpire(state)
  if state.exclusive or state.count == 0 then return state.exclusive end
  local member = call('ZRANGE', companion(state, 'e'), 0, 0)[1]
  return member and holder(state, sub(member, 17))
end
local function store(state, entry)
  need(state, entry.expiry)
  if entry.mode == 'x' then return write(state, 'x', formatHolder(entry)) end
  write(state, 'h' .. entry.owner, formatHolder(entry))
  call('ZADD', companion(state, 'e'), entry.expiry, expiryMember(entry))
  state.isShared = true
end
local function putHolder(state, entry)
  if entry.mode == 'x' then
    state.exclusive = entry
  else
    local limit = string.format('%.0f', entry.limit)
    state.shared[entry.owner] = entry
    state.count, state.weight = state.count + 1, state.weight + entry.weight
    state.limits[limit] = (state.limits[limit] or 0) + 1
    if not entry.confirmed then state.claims = state.claims + 1 end
    writeOccupancy(state)
  end
  store(state, entry)
end
local function updateHolder(state, entry, confirms)
  if confirms and entry.mode ~= 'x' then
    state.claims = state.claims - 1
    writeOccupancy(state)
  end
  store(state, entry)
end
local function dropHolder(state, entry)
  if entry.mode == 'x' then
    state.exclusive = nil
    return write(state, 'x', false)
  end
  local limit = string.format('%.0f', entry.limit)
  state.shared[entry.owner] = false
  state.count, state.weight = state.count - 1, state.weight - entry.weight
  state.limits[limit] = state.limits[limit] > 1 and state.limits[limit] - 1 or nil
  if not entry.confirmed then state.claims = state.claims - 1 end
  write(state, 'h' .. entry.owner, false)
  call('ZREM', companion(state, 'e'), expiryMember(entry))
  writeOccupancy(state)
end
local function pendingOf(state, client)
  local pending = {}
  if not state.exclusive and state.claims == 0 then return pending end
  for _, entry in ipairs(eachHolder(state)) do
    if entry.client == client and not entry.confirmed then pending[#pending + 1] = entry end
  end
  return pending
end
local function waiter(state, owner)
  if state.waiting == 0 then return nil end
  if state.queued[owner] == nil then
    local text = call('HGET', state.key, 'w' .. owner)
    state.queued[owner] = text and parseWaiter(text)
  end
  return state.queued[owner] or nil
end
local function eachWaiter(state)
  local waiters, fields = {}, state.waiting > 0 and call('HGETALL', state.key) or {}
  for place = 1, #fields, 2 do
    local field = fields[place]
    if sub(field, 1, 1) == 'w' and state.queued[sub(field, 2)] ~= false then
      waiters[#waiters + 1] = parseWaiter(fields[place + 1])
    end
  end
  table.sort(waiters, function(a, b) return a.order < b.order end)
  return waiters
end
local function lineOf(state, client, ...)
  return call('ZRANGEBYLEX', companion(state, 'l'), '[' .. client .. ' ', '(' .. client .. '!', ...)
end
local function firstOf(state, client)
  local member = lineOf(state, client, 'LIMIT', 0, 1)[1]
  if not member then return nil end
  local order = sub(member, #client + 2, #client + 17)
  return tonumber(order), sub(member, #client + 18)
end
local function head(state)
  if state.waiting == 0 then return nil end
  local client = call('ZRANGE', companion(state, 'r'), 0, 0)[1]
  if not client then return nil end
  local _, owner = firstOf(state, client)
  return waiter(state, owner)
end
local function touchOf(state, client)
  if state.lean or state.closed[client] then return nil end
  return call('HGET', state.key, 'c' .. client)
end
local function enqueue(state, entry, goneUs)
  local client, order = entry.client, digits(state.order + 1)
  state.order, state.waiting = state.order + 1, state.waiting + 1
  write(state, 'w' .. entry.owner, nowText .. order .. entry.body)
  write(state, 'o', state.order)
  write(state, 'n', state.waiting)
  if not touchOf(state, client) then
    state.closed[client] = nil
    write(state, 'c' .. client, string.format('%.0f', entry.touch))
    call('ZADD', companion(state, 'g'), goneUs, client)
    call('ZADD', companion(state, 'r'), state.order, client)
    need(state, goneUs)
  end
  call('ZADD', companion(state, 'l'), 0, client .. ' ' .. order .. entry.owner)
  state.isQueued = true
end
local function closeLine(state, client)
  state.closed[client] = true
  write(state, 'c' .. client, false)
  call('ZREM', companion(state, 'r'), client)
  call('ZREM', companion(state, 'g'), client)
end
local function dropWaiter(state, entry)
  local client = entry.client
  state.queued[entry.owner], state.waiting = false, state.waiting - 1
  write(state, 'w' .. entry.owner, false)
  write(state, 'n', state.waiting)
  call('ZREM', companion(state, 'l'), client .. ' ' .. entry.order .. entry.owner)
  local first = firstOf(state, client)
  if first then
    call('ZADD', companion(state, 'r'), 'XX', first, client)
  else
    closeLine(state, client)
  end
end
local function waitingOf(state, client)
  if state.waiting == 0 then return 0 end
  local line = companion(state, 'l')
  return call('ZLEXCOUNT', line, '[' .. client .. ' ', '(' .. client .. '!')
end
local function setAlive(state, client, periods)
  if state.waiting == 0 then return end
  local touch = touchOf(state, client)
  if not touch then return end
  local goneUs = now + periods * touch
  call('ZADD', companion(state, 'g'), goneUs, client)
  call('ZADD', companion(state, 'r'), firstOf(state, client), client)
  state.isQueued = true
  need(state, goneUs)
end
local function setSuspect(state, client)
  if state.waiting > 0 then call('ZREM', companion(state, 'r'), client) end
end
local function dropSilent(state)
  if state.waiting == 0 then return end
  for _, client in ipairs(call('ZRANGEBYSCORE', companion(state, 'g'), '-inf', now)) do
    local members = lineOf(state, client)
    for _, member in ipairs(members) do
      local owner = sub(member, #client + 18)
      state.queued[owner] = false
      write(state, 'w' .. owner, false)
    end
    local line = companion(state, 'l')
    call('ZREMRANGEBYLEX', line, '[' .. client .. ' ', '(' .. client .. '!')
    state.waiting = state.waiting - #members
    write(state, 'n', state.waiting)
    closeLine(state, client)
  end
end
local function putMark(state, token, untilUs, meta)
  state.mark = { token = token, untilUs = untilUs, meta = meta }
  write(state, 'm', digits(untilUs) .. digits(token) .. meta)
  need(state, untilUs)
end
local function dropMark(state)
  state.mark = nil
  write(state, 'm', false)
end
local function tombstone(state, owner)
  if state.buried <= now then return nil end
  local text = call('GET', companion(state, 't' .. owner))
  if not text then return nil end
  local untilUs = tonumber(sub(text, 1, 16))
  if untilUs <= now then return nil end
  return { untilUs = untilUs, reason = sub(text, 17, 17) == 'r' and sub(text, 18) }
end
local function bury(state, owner, untilUs, reason)
  local before = tombstone(state, owner)
  if before then
    untilUs, reason = math.max(untilUs, before.untilUs), reason or before.reason
  end
  local text = digits(untilUs) .. (reason and 'r' .. reason or '-')
  call('SET', companion(state, 't' .. owner), text, 'PXAT', endMs(untilUs))
  if untilUs > state.buried then
    state.buried = untilUs
    write(state, 't', digits(untilUs))
  end
  need(state, untilUs)
end
local SILENT_PERIODS = 3
local NO_LIMIT = 9007199254740991
local function text(number) return string.format('%.0f', number) end
local function emit(client, message)
  return call('PUBLISH', client, message) > 0 or flags % 2 == 1
end
local function emitNews(state, client, kind, owner, token, detail)
  emit(client, kind .. cjson.encode({ sub(state.suffix, 2), owner, text(token), detail }))
end
local function fits(state, request)
  if state.exclusive then return false end
  if state.count == 0 then return request.weight <= request.limit end
  if request.mode == 'x' then return false end
  local limit = math.min(NO_LIMIT, request.limit)
  for other in pairs(state.limits) do limit = math.min(limit, tonumber(other)) end
  return state.weight + request.weight <= limit
end
local function nextToken() return math.max(now, raise(0) + 1) end
local function expire(state)
  local next = nextToExpire(state)
  while next and next.expiry <= now do
    dropHolder(state, next)
    if not next.confirmed then setSuspect(state, next.client) end
    next = nextToExpire(state)
  end
  if state.mark and state.mark.untilUs <= now then
    dropMark(state)
  end
  dropSilent(state)
end
local function handOff(state, entry, toucher)
  local token, expiry = nextToken(), now + entry.claim
  local grant = { entry.owner, text(token), text(entry.span), text(now), text(expiry) }
  local message = 'g' .. table.concat(grant, ' ') .. ' ' .. sub(state.suffix, 2)
  if not emit(entry.client, message) and entry.client ~= toucher then
    return setSuspect(state, entry.client)
  end
  dropWaiter(state, entry)
  raise(token + entry.span - 1)
  entry.token, entry.expiry, entry.granted, entry.confirmed = token, expiry, now, false
  putHolder(state, entry)
end
local function endWaiters(state)
  for _, entry in ipairs(eachWaiter(state)) do
    dropWaiter(state, entry)
    emitNews(state, entry.client, 'm', entry.owner, state.mark.token, state.mark.meta)
  end
end
local function serve(state, toucher)
  if state.waiting == 0 then return end
  if state.mark then return endWaiters(state) end
  local first = head(state)
  while first and fits(state, first) do
    handOff(state, first, toucher)
    first = head(state)
  end
end
local function viewOf(entry)
  local fields = {
    text(entry.token), text(entry.span), entry.mode, text(entry.weight), text(entry.limit),
    text(now - entry.granted), text(entry.expiry - now), entry.meta,
  }
  return table.concat(fields, ' ')
end
local function blockage(state)
  local next = nextToExpire(state)
  return next and ' ' .. viewOf(next) or ''
end
local function confirmHolder(state, entry)
  if entry.confirmed then return end
  entry.confirmed = true
  entry.expiry = math.max(entry.expiry, now + entry.ttl)
  updateHolder(state, entry, true)
end
local function renewed(state, entry)
  local waiting = state.waiting > 0 and ' 1 ' or ' 0 '
  local remaining = text(entry.expiry - now)
  return 'N' .. remaining .. waiting .. text(entry.token) .. ' ' .. text(entry.span)
end
local function gone(state, owner)
  local grave = tombstone(state, owner)
  if grave and grave.reason then return 'Ov' .. grave.reason end
  return state.exclusive and 'Or' or 'Om'
end
local function acquire(state, request, notAfter, seen, mayWait)
  if now > notAfter then return 'L' end
  local owner = request.owner
  if tombstone(state, owner) then return 'E' end
  raise(seen)
  local mine = holder(state, owner)
  if mine then
    confirmHolder(state, mine)
    return 'g' .. text(mine.token) .. ' ' .. text(mine.span) .. ' ' .. text(mine.expiry - now)
  end
  local mark = state.mark
  if mark then
    return 'M' .. text(mark.token) .. ' ' .. text(mark.untilUs - now) .. ' ' .. mark.meta
  end
  if waiter(state, owner) then return 'Q-' .. blockage(state) end
  if not head(state) and fits(state, request) then
    local token = nextToken()
    raise(token + request.span - 1)
    request.token, request.expiry, request.granted = token, now + request.ttl, now
    request.confirmed = true
    putHolder(state, request)
    return 'G' .. text(token)
  end
  if not mayWait then return 'B' .. blockage(state) end
  local ahead = state.waiting
  enqueue(state, request, now + SILENT_PERIODS * request.touch)
  return 'Q' .. ahead .. blockage(state)
end
local function confirm(state, owner)
  local entry = holder(state, owner)
  if not entry then return gone(state, owner) end
  confirmHolder(state, entry)
  return renewed(state, entry)
end
local function renew(state, owner, ttl, notAfter, seen)
  if now > notAfter then return 'L' end
  raise(seen)
  local entry = holder(state, owner)
  if not entry then return gone(state, owner) end
  local confirms = not entry.confirmed
  entry.confirmed = true
  entry.expiry = math.max(entry.expiry, now + ttl)
  updateHolder(state, entry, confirms)
  return renewed(state, entry)
end
local function release(state, owner, tombstoneUs, keepUs, keepMeta)
  if tombstoneUs > now then bury(state, owner, tombstoneUs) end
  local held = holder(state, owner)
  local queued = not held and waiter(state, owner)
  if queued then dropWaiter(state, queued) end
  if held then
    dropHolder(state, held)
    if keepUs then putMark(state, held.token, now + keepUs, keepMeta) end
  end
  if held or queued then serve(state) end
  local next = nextToExpire(state)
  local claim = next and not next.confirmed and text(next.expiry - now) or ''
  return (held and 'R' or 'r') .. claim
end
local function touch(state, client)
  local parts = {}
  for _, entry in ipairs(pendingOf(state, client)) do
    local grant = { entry.owner, text(entry.token), text(entry.span), text(entry.granted) }
    parts[#parts + 1] = ' ' .. table.concat(grant, ' ') .. ' ' .. text(entry.expiry)
  end
  local counts = waitingOf(state, client) .. ' ' .. #parts
  return 'T' .. counts .. table.concat(parts) .. blockage(state)
end
local function revoke(state, token, reason)
  if state.mark and state.mark.token == token then
    dropMark(state)
    return 'V1'
  end
  for _, entry in ipairs(eachHolder(state)) do
    if token >= entry.token and token < entry.token + entry.span then
      dropHolder(state, entry)
      bury(state, entry.owner, entry.expiry, reason)
      emitNews(state, entry.client, 'v', entry.owner, entry.token, reason)
      serve(state)
      return 'V1'
    end
  end
  return 'V0'
end
local function inspect(state)
  local mark, holders, waiters = state.mark, {}, {}
  for place, entry in ipairs(eachHolder(state)) do holders[place] = viewOf(entry) end
  for place, entry in ipairs(eachWaiter(state)) do
    local request = { entry.mode, text(entry.weight), text(entry.limit), text(now - entry.since) }
    waiters[place] = table.concat(request, ' ') .. ' ' .. entry.meta
  end
  local left = mark and text(mark.token) .. ' ' .. text(mark.untilUs - now) .. ' ' .. mark.meta
  return { left or '', holders, waiters }
end
local function refusal(isAcquire)
  if moving() then return 'TRYAGAIN ' .. moving() end
  local probe = index .. '?'
  if not isAcquire then
    call('DEL', probe)
    return nil
  end
  local answer = try('SETRANGE', probe, 0, '')
  return type(answer) == 'table' and answer.err
end
local commands = {}
function commands.c(state, owner) return confirm(state, owner) end
function commands.n(state, text)
  local notAfter, seen = tonumber(sub(text, 1, 16)), tonumber(sub(text, 17, 32))
  local ttl, owner = string.match(text, '^(%d+) (.*)$', 33)
  return renew(state, owner, tonumber(ttl), notAfter, seen)
end
function commands.r(state, owner) return release(state, owner, 0) end
function commands.d(state, text)
  local tombstoneUs, keepUs, owner, meta = string.match(text, '^(%d+) (%d*) (%S+) (.*)$')
  return release(state, owner, tonumber(tombstoneUs), tonumber(keepUs), meta)
end
function commands.t(state, client) return touch(state, client) end
function commands.i(state) return inspect(state) end
function commands.v(state, text)
  local token, reason = string.match(text, '^(%d+) (.*)$')
  return revoke(state, tonumber(token), reason)
end
return function(command, key)
  local operation, text = sub(command, 1, 1), sub(command, 2)
  local mode = string.lower(operation)
  local request, client = nil, operation == 't' and text
  local isAcquire = mode == 'x' or mode == 's'
  local refused = refusal(isAcquire)
  if refused then return '!' .. refused end
  if isAcquire then
    request = parseBody({}, string.match(text, '^%d+ (.*)$', 33))
    client = request.client
  end
  local state, reply = load(key), nil
  expire(state)
  if client then setAlive(state, client, SILENT_PERIODS) end
  serve(state, operation == 't' and client)
  if request then
    local notAfter, seen = tonumber(sub(text, 1, 16)), tonumber(sub(text, 17, 32))
    reply = acquire(state, request, notAfter, seen, mode ~= operation)
  else
    reply = commands[operation](state, text)
  end
  commit(state)
  return reply
end
      end)()
    end
    reply = apply(ARGV[turn], KEYS[turn + 1])
  end
  turn = turn + 1
  replies[turn] = reply
end
if pending or isRaised then
  local added, removed = {}, {}
  if isRaised then added = { last, '' } end
  for key, isUsed in pairs(pending or {}) do
    if isUsed then
      added[#added + 1] = nowText
      added[#added + 1] = key
    else
      removed[#removed + 1] = key
    end
  end
  if removed[1] then call('ZREM', index, unpack(removed)) end
  if added[1] then call('ZADD', index, unpack(added)) end
end
if now % 16 == 0 and not moving() then
  for _, key in ipairs(call('ZRANGE', index, 0, now - 60000000, 'BYSCORE', 'LIMIT', 0, 64)) do
    local restMs = key ~= '' and call('PTTL', key)
    if restMs == -2 then
      call('ZREM', index, key)
    elseif restMs then
      call('ZADD', index, now + restMs * 1000, key)
    end
  end
end
if flags >= 2 then replies[turn + 1] = string.match(call('INFO', 'server'), 'run_id:(%x+)') end
return replies`;
