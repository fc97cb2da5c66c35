-- The waiters of a name. Each waiter gets the place after the last one. Before the place `next`
-- there are only waiters of suspect clients. A client has a record while it has waiters. A waiter
-- whose place is not above the `base` of its client belongs to an earlier life of that client,
-- which ended in silence: it does not count any more.
--
-- A waiter or a client whose record cannot be read counts as absent; its process asks again.
--
-- in:       call sub find now nowText digits write NO_LIMIT entries hash
-- out:      queue
-- commands: HGETALL HMGET ZADD ZRANGE ZRANGEBYSCORE ZREM
-- No queue spans so many places: if the sums say so, they are damaged, and `head` reads all fields.
local FAR = 1000000000
local queue = {}

-- One call passes at most so many places without a waiter to serve, and looks at so many silent
-- clients. The next call goes on. Until the head of the queue is found, no waiter is served, and no
-- new owner is granted the lock before the queue.
local MOST_PASSED = 256
local MOST_SILENT = 64

function queue.client(state, id)
  local client = state.clients[id]
  if client == nil then
    local text = hash.get(state, 'c' .. id)
    client = false
    if text and #text == CLIENT.length and find(text, '^%d+[as]$') then
      client = {
        gone = tonumber(sub(text, CLIENT.gone)), touch = sub(text, CLIENT.touch),
        base = tonumber(sub(text, CLIENT.base)), passed = tonumber(sub(text, CLIENT.passed)),
        waiting = tonumber(sub(text, CLIENT.waiting)), suspect = sub(text, CLIENT.state) == 's',
      }
    end
    state.clients[id] = client
  end
  return client
end

function queue.dropClient(state, id)
  state.clients[id], state.isChanged = false, true
  hash.set(state, 'c' .. id, false)
end

function queue.entry(state, place)
  local text = hash.get(state, 'w' .. digits(place))
  if not text or find(text, '%D') ~= WAITER.letter.start then return nil end
  return entries.read({ since = sub(text, WAITER.since), place = place }, sub(text, WAITER.request))
end

-- The place of an owner's waiter.
local function placeOf(state, owner)
  local place = hash.get(state, 'o' .. owner)
  local isPlace = place and #place == WAITER_FIELD.place.size and find(place, '^%d+$')
  return isPlace and tonumber(place) or nil
end

-- All places from this one on, in order.
function queue.placesFrom(state, first)
  local fields = state.hasHash and call('HGETALL', state.key) or {}
  for at = 1, #fields, 2 do
    if state.fields[fields[at]] == nil then state.fields[fields[at]] = fields[at + 1] end
  end
  local places = {}
  for field, value in pairs(state.fields) do
    if value and #field == WAITER_FIELD.length and find(field, '^w%d+$') then
      local place = tonumber(sub(field, WAITER_FIELD.place))
      if place >= first then places[#places + 1] = place end
    end
  end
  table.sort(places)
  return places
end

function queue.dropEntry(state, place, owner)
  hash.set(state, 'w' .. digits(place), false)
  hash.set(state, 'o' .. owner, false)
  state.taken, state.isChanged = math.max(0, state.taken - 1), true
end

function queue.isValid(state, entry)
  local client = queue.client(state, entry.client)
  return client and entry.place > client.base
end

function queue.waiter(state, owner)
  local place = state.waiting > 0 and placeOf(state, owner)
  local entry = place and queue.entry(state, place)
  return entry and entry.owner == owner and queue.isValid(state, entry) and entry or nil
end

-- The first waiter whose client is not suspect, and whether the search for it must go on.
function queue.head(state)
  local place, entry, far = state.next, nil, nil
  while state.taken > 0 and place <= state.last do
    if state.skips == MOST_PASSED then
      state.isBehind = true
      break
    end
    entry = queue.entry(state, place)
    if entry then
      local client = queue.client(state, entry.client)
      if not client or place <= client.base then
        queue.dropEntry(state, place, entry.owner)
      elseif not client.suspect then
        break
      elseif client.passed == 0 then
        client.passed, client.isChanged = place, true
      end
      entry = nil
    end
    place, state.skips = place + 1, state.skips + 1
    if state.last - place > FAR then
      far = far or queue.placesFrom(state, place)
      while far[1] and far[1] < place do table.remove(far, 1) end
      place = far[1] or state.last + 1
    end
    -- The longer the search, the more places one call reads.
    if state.fields['w' .. digits(place)] == nil and state.hasHash then
      queue.readAhead(state, place, math.min(place - state.next, MOST_PASSED))
    end
  end
  if place ~= state.next then
    state.next, state.isChanged = place, true
  end
  return entry, not entry and state.taken > 0 and place <= state.last
end

function queue.readAhead(state, place, many)
  local fields = {}
  for ahead = 1, many do fields[ahead] = 'w' .. digits(place + ahead - 1) end
  for at, text in ipairs(call('HMGET', state.key, unpack(fields))) do
    if state.fields[fields[at]] == nil then state.fields[fields[at]] = text end
  end
end

-- The time when a client has been silent for too long moves with each of its commands. The sorted
-- set keeps an earlier time for it, and `bound` is the least of these.
function queue.watch(state, id, goneUs)
  if state.bound == NO_LIMIT then state.isWatched = true end
  state.bound = math.min(state.bound, goneUs)
  write('ZADD', hash.companion(state, 'g'), string.format('%.0f', goneUs), id)
end

function queue.add(state, entry, goneUs)
  local id, owner, place = entry.client, entry.owner, state.last + 1
  local before = placeOf(state, owner)
  if before then queue.dropEntry(state, before, owner) end
  local client = queue.client(state, id)
  if not client then
    client = { gone = goneUs, touch = entry.touch, base = state.last, passed = 0, waiting = 0 }
    state.clients[id] = client
    queue.watch(state, id, goneUs)
  else
    client.touch = math.max(client.touch, entry.touch)
    client.gone = math.max(client.gone, goneUs)
  end
  hash.need(state, goneUs)
  client.waiting, client.isChanged = client.waiting + 1, true
  if state.taken == 0 then state.next = place end
  state.last, state.waiting, state.taken = place, state.waiting + 1, state.taken + 1
  state.isChanged = true
  hash.set(state, 'w' .. digits(place), nowText .. entry.request)
  hash.set(state, 'o' .. owner, digits(place))
end

function queue.drop(state, entry)
  local id = entry.client
  local client = queue.client(state, id)
  queue.dropEntry(state, entry.place, entry.owner)
  state.waiting = math.max(0, state.waiting - 1)
  if not client then return end
  client.waiting, client.isChanged = client.waiting - 1, true
  if client.waiting <= 0 then queue.dropClient(state, id) end
end

-- A client sent a command: its waiters may be served, and its silence starts again.
function queue.setAlive(state, id, periods)
  local client = state.waiting > 0 and queue.client(state, id)
  if not client then return end
  if client.passed > 0 then queue.lookBack(state, client) end
  client.suspect, client.isChanged = false, true
  local goneUs = now + periods * client.touch
  -- The time is earlier than before only if the clock was set back.
  if goneUs < client.gone then queue.watch(state, id, goneUs) end
  client.gone = goneUs
  hash.need(state, client.gone)
end

-- The waiters of a suspect client keep their places, but are passed over.
function queue.setSuspect(state, id)
  local client = state.waiting > 0 and queue.client(state, id)
  if client then client.suspect, client.isChanged = true, true end
end

-- The search starts again at the first waiter of the client that was passed over.
function queue.lookBack(state, client)
  state.next, state.isChanged = math.min(state.next, client.passed), true
  client.passed = 0
end

-- Drops the clients that were silent for too long, once in a call. `head` drops their waiters when
-- it meets them.
function queue.dropSilent(state)
  local key = hash.companion(state, 'g')
  state.isSwept = true
  for _, id in ipairs(call('ZRANGEBYSCORE', key, '-inf', nowText, 'LIMIT', 0, MOST_SILENT)) do
    local client = queue.client(state, id)
    if client and client.gone > now then
      write('ZADD', key, string.format('%.0f', client.gone), id)
    else
      call('ZREM', key, id)
      if client then
        if client.passed > 0 then queue.lookBack(state, client) end
        state.waiting = math.max(0, state.waiting - client.waiting)
        queue.dropClient(state, id)
      end
    end
  end
  local next = call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
  state.bound, state.isChanged = math.min(next and tonumber(next) or NO_LIMIT, NO_LIMIT), true
end
