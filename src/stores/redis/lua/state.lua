-- The state of one name as a hash, when it is more than one lean holder. Beside it, while needed:
-- e  shared holders by expiry (token and owner)   l  waiters in the lines of their clients
-- r  clients that can be served, by their first waiter's order   g  clients by the end of patience
-- t<owner>  a tombstone. All of them expire with the latest time that anything in them matters.
--
-- in:       call try sub now nowText index list endMs
-- out:      parseBody load commit holder eachHolder nextToExpire putHolder updateHolder dropHolder
--           pendingOf waiter eachWaiter head enqueue dropWaiter waitingOf setAlive setSuspect
--           dropSilent putMark dropMark tombstone bury
-- commands: DEL GET HDEL HGET HGETALL HMGET HSET PEXPIREAT SET ZADD ZLEXCOUNT ZRANGE
--           ZRANGEBYLEX ZRANGEBYSCORE ZREM ZREMRANGEBYLEX
-- Even, and well below what one call may take.
local CHUNK = 2000
local BODY = '^(%S+) (%d+) (%S+) (%S) (%d+) (%d+) (%d+) (%d+) (%d+) '

local function digits(number) return string.format('%016.0f', number) end

-- The body of a holder or waiter is kept as the client sent it.
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

-- Fields are written once, by commit: what a command wrote and dropped again was never there.
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
  -- With nothing left but tombstones, it goes with the last of them.
  if not (isHeld or state.waiting > 0 or state.mark) then untilMs = endMs(state.buried) end
  -- Never dropped, so that the hash and its expiry outlive the rest of the fields.
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

-- In the order of their tokens.
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

-- Ties go to the older grant: members of one score are ordered by their token.
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

-- The holders of a client that are not confirmed.
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

-- In the order of the queue.
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

-- A client's line: members of one score, ordered by client and order.
local function lineOf(state, client, ...)
  return call('ZRANGEBYLEX', companion(state, 'l'), '[' .. client .. ' ', '(' .. client .. '!', ...)
end

local function firstOf(state, client)
  local member = lineOf(state, client, 'LIMIT', 0, 1)[1]
  if not member then return nil end
  local order = sub(member, #client + 2, #client + 17)
  return tonumber(order), sub(member, #client + 18)
end

-- The first waiter whose client is not suspect.
local function head(state)
  if state.waiting == 0 then return nil end
  local client = call('ZRANGE', companion(state, 'r'), 0, 0)[1]
  if not client then return nil end
  local _, owner = firstOf(state, client)
  return waiter(state, owner)
end

-- The touch period of a client that has waiters here.
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

-- Any word of a client: its waiters are served again, and its silence starts anew.
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

-- Its waiters keep their places, but are passed over.
local function setSuspect(state, client)
  if state.waiting > 0 then call('ZREM', companion(state, 'r'), client) end
end

-- Drops the clients that were silent for too long, with all their waiters.
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

-- Nothing that is still under way for this owner may act until then. A revocation keeps its reason.
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
