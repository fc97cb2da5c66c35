-- The rules of rules/ledger.ts: that file is the specification, and a differential test compares
-- every reply and every push.
--
-- in:       call sub now flags raise learn nextToken isTimed spanOf LONGEST refusal moving entries
--           hash queue shared holders
-- out:      SLICE oversight ending emit blockage hasMore serve
-- commands: PUBLISH
-- returns:  the function that applies a command to a name and gives the reply and the state, and
--           the one that saves the state
local SILENT_PERIODS = 3
-- How much work that piled up one call does, beside one step for each command: rules/upkeep.ts.
local SLICE = 64
local spare, endingPart, oversightPart, serve = SLICE, nil, nil, nil

-- Whether a loop that has done so many steps may do another.
local function allows(state, done)
  if done == 0 then return true end
  if spare == 0 then
    state.isBehind = true
    return false
  end
  spare = spare - 1
  return true
end

-- Whether this command left work that a waiter needs done.
local function hasMore(state) return state.isBehind and state.waiting > 0 end

local function ending()
  if not endingPart then
    endingPart = (function()
      include('ending')
    end)()
  end
  return endingPart
end

-- False when it is certain that nobody listens; a Cluster counts only the node's own listeners.
local function emit(client, message)
  return call('PUBLISH', client, message) > 0 or flags % 2 == 1
end

-- Who is in the way: the holder that expires first.
local function blockage(state)
  local next = holders.next(state)
  return next and ' ' .. entries.text(next) or ''
end

local function oversight()
  if not oversightPart then
    oversightPart = (function()
      include('oversight')
    end)()
  end
  return oversightPart
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
  -- Where work has piled up, the client may have spoken between the end of its grant and now.
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
  if state.mark and state.mark.untilUs <= now then ending().dropMark(state) end
  if state.bound <= now and not state.isSwept then queue.dropSilent(state) end
end

-- One that has expired goes at once, however many are still to be dropped before it.
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

-- Gives the name to a waiter for the offer window; one that cannot be reached is passed over,
-- unless it is the one who touches: it hears of its grants by the answer.
local function handOff(state, entry, token, toucher)
  local expiry = now + entry.offer
  local times = string.format(' %.0f %.0f %.0f %.0f ', token, entry.span, now, expiry)
  local isHeard = emit(entry.client, 'g' .. entry.owner .. times .. state.name)
  if not isHeard and entry.client ~= toucher then
    return queue.setSuspect(state, entry.client)
  end
  queue.drop(state, entry)
  grant(state, entry, token, expiry, false)
  state.at, state.isHandedOff = entry.place + 1, true
end

-- Serves the queue from its head for as long as the head fits: nobody overtakes, nobody starves.
-- With a mark, every waiter is told instead that the work is done.
function serve(state, toucher)
  if state.waiting == 0 or state.exclusive then return end
  local mark, first, token, done = state.mark, queue.head(state), nextToken(), 0
  -- Where the count is wrong, a client could not be passed over, and its waiter be met for ever.
  while first and state.waiting > 0 and (mark or token and fits(state, first))
    and allows(state, done) do
    if mark then
      oversight().endWait(state, first)
    else
      handOff(state, first, token, toucher)
    end
    first, token, done = not state.exclusive and queue.head(state), nextToken(), done + 1
  end
end

-- The first word of a waiter about its grant turns the offer window into the full lease, once.
local function confirmHolder(state, entry)
  if entry.confirmed then return end
  entry.confirmed = true
  entry.expiry = math.max(entry.expiry, now + entry.ttl)
  holders.update(state, entry, true)
end

local function acquire(state, request, notAfter, seen, mayWait)
  if now > notAfter then return 'L' end
  local owner = request.owner
  if state.buried > now and ending().tombstone(state, owner) then return 'E' end
  if not learn(seen) then return 'Us' end
  local mine = holderOf(state, owner)
  if mine then
    confirmHolder(state, entries.complete(mine))
    return string.format('g%.0f %.0f %.0f', mine.token, mine.span, mine.expiry - now)
  end
  local mark = state.mark
  if mark then
    return string.format('M%.0f %.0f ', mark.token, mark.untilUs - now) .. mark.meta
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

-- A renewal says for how long, a confirm leaves that to the request. An heir resumed the lease.
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
  -- After the update: a holder that was not confirmed stands among those of its old client.
  if heir then
    entries.inherit(entry, heir)
    holders.update(state, entry, false)
  end
  local waiting, remaining = state.waiting > 0 and 1 or 0, entry.expiry - now
  return string.format('N%.0f %d %.0f %.0f', remaining, waiting, entry.token, entry.span)
end

local function release(state, owner, tombstoneUs, keepUs, keepMeta)
  tombstoneUs = math.min(tombstoneUs, now + LONGEST)
  if tombstoneUs > now then ending().bury(state, owner, tombstoneUs) end
  local held = holderOf(state, owner)
  local queued = not held and queue.waiter(state, owner)
  if queued then queue.drop(state, queued) end
  if held then
    holders.drop(state, held)
    if keepUs then
      local untilUs = now + math.min(keepUs, LONGEST)
      ending().putMark(state, entries.complete(held).token, untilUs, keepMeta)
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
    owner = sub(command, 2, -2)
  elseif operation == 'n' then
    owner = sub(command, 50, -2)
  elseif operation == 'm' then
    owner, heir = string.match(command, '^(%S+) (%S+)$', 50)
  elseif operation == 'd' then
    words = { string.match(command, '^d(%d+) (%d*) (%S+) (.*)$') }
    owner = words[3]
  elseif operation == 't' then
    client = sub(command, 2)
  elseif operation ~= 'i' and operation ~= 'v' then
    if refusal() then return '!' .. refusal(), state end
    request = entries.read({}, sub(command, 34))
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
  if operation == 't' then return oversight().touch(state, client), state end
  if operation == 'i' then return oversight().inspect(state), state end
  if operation == 'v' then
    local token, reason = string.match(command, '^v(%d+) (.*)$')
    return oversight().revoke(state, tonumber(token), reason), state
  end
  local notAfter, seen = tonumber(sub(command, 2, 17)), tonumber(sub(command, 18, 33))
  if request then
    local mayWait = operation == string.upper(operation)
    if not spanOf(command) then return 'Ut', state end
    return acquire(state, request, notAfter, seen, mayWait), state
  end
  if not isTimed(command) or sub(command, 34, 49) > LONGEST then return 'Ut', state end
  if now > notAfter then return 'L', state end
  learn(seen)
  return renew(state, owner, tonumber(sub(command, 34, 49)), heir), state
end

return apply, hash.save
