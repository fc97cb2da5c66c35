-- The rules of rules/ledger.ts, function by function: that file is the specification, and a
-- differential test compares every reply and every push.
--
-- in:       call try sub now index flags raise moving parseBody load commit holder eachHolder
--           nextToExpire putHolder updateHolder dropHolder pendingOf waiter eachWaiter head
--           enqueue dropWaiter waitingOf setAlive setSuspect dropSilent putMark dropMark
--           tombstone bury
-- returns:  the function that applies a command to a name and gives the reply
-- commands: DEL PUBLISH SETRANGE
local SILENT_PERIODS = 3
local NO_LIMIT = 9007199254740991

local function text(number) return string.format('%.0f', number) end

-- False when it is certain that nobody listens; a Cluster counts only the node's own listeners.
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
    -- Nobody confirmed the grant: the client is dead or hung, and so are its other waiters.
    if not next.confirmed then setSuspect(state, next.client) end
    next = nextToExpire(state)
  end
  if state.mark and state.mark.untilUs <= now then
    dropMark(state)
  end
  dropSilent(state)
end

-- Gives the name to a waiter for the claim window; one that cannot be reached is passed over,
-- unless it is the one who touches: it hears of its grants by the answer.
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

-- What a mark says, every waiter may know: the work is done, there is nothing to wait for.
local function endWaiters(state)
  for _, entry in ipairs(eachWaiter(state)) do
    dropWaiter(state, entry)
    emitNews(state, entry.client, 'm', entry.owner, state.mark.token, state.mark.meta)
  end
end

-- Serves the queue from its head for as long as the head fits: nobody overtakes, nobody starves.
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

-- Who is in the way: the holder that expires first.
local function blockage(state)
  local next = nextToExpire(state)
  return next and ' ' .. viewOf(next) or ''
end

-- The first word of a waiter about its grant turns the claim window into the full lease, once.
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

-- At maxmemory a script may still write once it has deleted. So an acquire asks first whether it
-- may write at all, and whatever else comes begins by deleting what is not there.
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
