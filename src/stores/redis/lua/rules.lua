-- The general rules: those of rules/ledger.ts, which is their specification. A differential test
-- compares every reply and every push.
--
-- in:       sub now push raise learn nextToken isTimed spanOf LONGEST refusal moving entries
--           hash queue shared holders
-- out:      SLICE rare ending blockage hasMore serve
-- returns:  the function that applies a command to a name and gives the reply and the state; the
--           function that saves the state
local SILENT_PERIODS = 3
-- How many steps of work that piled up one call does, besides one for each command: see
-- rules/upkeep.ts.
local SLICE = 64
local spare, endingPart, rarePart, serve = SLICE, nil, nil, nil

-- Whether a loop that has done so many steps may do another one.
local function allows(state, done)
  if done == 0 then return true end
  if spare == 0 then
    state.isBehind = true
    return false
  end
  spare = spare - 1
  return true
end

-- Whether this command left work that waiters wait for.
local function hasMore(state) return state.isBehind and state.waiting > 0 end

local function ending()
  if not endingPart then
    endingPart = (function()
      include('ending')
    end)()
  end
  return endingPart
end

-- The holder that expires first, as the end of a reply.
local function blockage(state)
  local next = holders.next(state)
  return next and ' ' .. entries.text(next) or ''
end

local function rare()
  if not rarePart then
    rarePart = (function()
      include('rare')
    end)()
  end
  return rarePart
end

local function fits(state, request)
  if state.exclusive then return false end
  if state.count == 0 then return request.weight <= request.limit end
  return request.mode == 's' and shared().fits(state, request)
end

local function lapse(state, entry)
  holders.drop(state, entry)
  -- The client did not confirm the grant: it is dead or hung, and so are its other waiters.
  if entry.confirmed then return end
  local id = entries.complete(entry).client
  -- If work has piled up, the client may have spoken after its grant had expired.
  local client = state.waiting > 0 and queue.client(state, id)
  local hasSpoken = client and client.gone - SILENT_PERIODS * client.touch >= entry.expiry
  if not hasSpoken then queue.setSuspect(state, id) end
end

local function expire(state)
  local next, done = holders.next(state), 0
  while next and next.expiry <= now and allows(state, done) do
    lapse(state, next)
    next, done = holders.next(state), done + 1
  end
  if state.mark and state.mark.keptUntil <= now then ending().dropMark(state) end
  if state.bound <= now and not state.isSwept then queue.dropSilent(state) end
end

-- The holder of an owner. A holder that has expired is dropped now, even if holders that expired
-- before it are still to be dropped.
local function holderOf(state, owner)
  local entry = holders.of(state, owner)
  if not entry or entry.expiry > now then return entry end
  lapse(state, entry)
  return nil
end

local function grant(state, entry, token, expiry, isConfirmed)
  raise(token + entry.span - 1)
  entry.token, entry.expiry, entry.granted, entry.confirmed = token, expiry, now, isConfirmed
  holders.put(state, entry)
end

-- Offers the lock to a waiter for the offer window. A waiter whose client does not listen is passed
-- over, unless that client sent this command: it learns of its grants by the reply to a touch.
local function handOff(state, entry, token, toucher)
  local expiry = now + entry.offer
  local times = string.format(' %.0f %.0f %.0f %.0f ', token, entry.span, now, expiry)
  local isHeard = push(entry.client, 'g' .. entry.owner .. times .. state.name)
  if not isHeard and entry.client ~= toucher then
    return queue.setSuspect(state, entry.client)
  end
  queue.drop(state, entry)
  grant(state, entry, token, expiry, false)
  state.next, state.isHandedOff = entry.place + 1, true
end

-- Serves the queue from its head for as long as the head fits: no waiter overtakes another. With a
-- mark, every waiter is told that the work is done.
function serve(state, toucher)
  if state.waiting == 0 or state.exclusive then return end
  local mark, first, token, done = state.mark, queue.head(state), nextToken(), 0
  -- With a damaged count of waiters, `setSuspect` would change nothing, and the loop would meet the
  -- same waiter for ever.
  while first and state.waiting > 0 and (mark or token and fits(state, first))
    and allows(state, done) do
    if mark then
      rare().endWait(state, first)
    else
      handOff(state, first, token, toucher)
    end
    first, token, done = not state.exclusive and queue.head(state), nextToken(), done + 1
  end
end

-- The first command of the waiter about its grant turns the offer into a full lease, once.
local function confirmHolder(state, entry)
  if entry.confirmed then return end
  entry.confirmed = true
  entry.expiry = math.max(entry.expiry, now + entry.ttl)
  holders.update(state, entry, true)
end

local function acquire(state, request, notAfter, seen, mayWait)
  if now > notAfter then return 'L' end
  local owner = request.owner
  if state.lastTombstone > now and ending().tombstone(state, owner) then return 'E' end
  if not learn(seen) then return 'Us' end
  local mine = holderOf(state, owner)
  if mine then
    confirmHolder(state, entries.complete(mine))
    return string.format('g%.0f %.0f %.0f', mine.token, mine.span, mine.expiry - now)
  end
  local mark = state.mark
  if mark then
    return string.format('M%.0f %.0f ', mark.token, mark.keptUntil - now) .. mark.meta
  end
  if queue.waiter(state, owner) then return 'Q-' .. blockage(state) end
  local token = nextToken()
  if not token then return 'Ul' end
  if fits(state, request) then
    local head, isUnknown = queue.head(state)
    if not head and not isUnknown then
      grant(state, request, token, now + request.ttl, true)
      return string.format('G%.0f', token)
    end
  end
  if not mayWait then return 'B' .. blockage(state) end
  if LONGEST - request.offer < 0 or LONGEST - 4 * request.touch < 0 then return 'Ut' end
  local ahead = state.waiting
  queue.add(state, request, now + SILENT_PERIODS * request.touch)
  return 'Q' .. ahead .. blockage(state)
end

-- A renewal has a ttl; a confirm has none and takes that of the request. With an heir, another
-- client resumed the lease.
local function renew(state, owner, ttl, heir)
  local entry = holderOf(state, owner)
  if not entry then return ending().gone(state, owner) end
  entries.complete(entry)
  if ttl then
    local confirms = not entry.confirmed
    entry.confirmed, entry.expiry = true, math.max(entry.expiry, now + ttl)
    holders.update(state, entry, confirms)
  else
    confirmHolder(state, entry)
  end
  -- After the update: an offer stands in the sorted set under its old client.
  if heir then
    entries.inherit(entry, heir)
    holders.update(state, entry, false)
  end
  local waiting, remaining = state.waiting > 0 and 1 or 0, entry.expiry - now
  return string.format('N%.0f %d %.0f %.0f', remaining, waiting, entry.token, entry.span)
end

local function release(state, owner, tombstoneUs, keepUs, keepMeta)
  tombstoneUs = math.min(tombstoneUs, now + LONGEST)
  if tombstoneUs > now then ending().putTombstone(state, owner, tombstoneUs) end
  local held = holderOf(state, owner)
  local queued = not held and queue.waiter(state, owner)
  if queued then queue.drop(state, queued) end
  if held then
    holders.drop(state, held)
    if keepUs then
      local keptUntil = now + math.min(keepUs, LONGEST)
      ending().putMark(state, entries.complete(held).token, keptUntil, keepMeta)
    end
  end
  if held or queued then serve(state) end
  local next, reply = holders.next(state), hasMore(state) and 's' or 'r'
  if held then reply = string.upper(reply) end
  if not next or next.confirmed then return reply end
  return reply .. string.format('%.0f', math.max(0, next.expiry - now))
end

local function apply(state, name, operation, command)
  if moving() then return '!TRYAGAIN ' .. moving(), state end
  local request, owner, client, words, heir = nil, '', '', nil, nil
  if operation == 'c' or operation == 'r' then
    owner = sub(command, COMMAND.words.start, -2)
  elseif operation == 'n' then
    owner = sub(command, RENEW.words.start, -2)
  elseif operation == 'm' then
    owner, heir = string.match(command, '^(%S+) (%S+)$', RENEW.words)
  elseif operation == 'd' then
    words = { string.match(command, '^d(%d+) (%d*) (%S+) (.*)$') }
    owner = words[3]
  elseif operation == 't' then
    client = sub(command, COMMAND.words)
  elseif operation ~= 'i' and operation ~= 'v' then
    if refusal() then return '!' .. refusal(), state end
    request = entries.read({}, sub(command, ACQUIRE.request))
    if not request then return 'Ut', state end
    owner, client = request.owner, request.client
  end
  state = state or hash.load(name, owner, client)
  state.isBehind = false
  expire(state)
  if client ~= '' then queue.setAlive(state, client, SILENT_PERIODS) end
  serve(state, operation == 't' and client)
  if operation == 'c' then return renew(state, owner), state end
  if operation == 'r' then return release(state, owner, 0), state end
  if operation == 'd' then
    local reply = release(state, owner, tonumber(words[1]), tonumber(words[2]), words[4])
    return reply, state
  end
  if operation == 't' then return rare().touch(state, client), state end
  if operation == 'i' then return rare().inspect(state), state end
  if operation == 'v' then
    local token, reason = string.match(command, '^v(%d+) (.*)$')
    return rare().revoke(state, tonumber(token), reason), state
  end
  local notAfter = tonumber(sub(command, ACQUIRE.notAfter))
  local seen = tonumber(sub(command, ACQUIRE.seen))
  if request then
    local mayWait = operation == string.upper(operation)
    if not spanOf(command) then return 'Ut', state end
    return acquire(state, request, notAfter, seen, mayWait), state
  end
  if not isTimed(command) or sub(command, RENEW.ttl) > LONGEST then return 'Ut', state end
  if now > notAfter then return 'L', state end
  learn(seen)
  return renew(state, owner, tonumber(sub(command, RENEW.ttl)), heir), state
end

return apply, hash.save
