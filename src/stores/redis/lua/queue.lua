-- Those who wait for a name. Every waiter has a place, one more than the one before; `at` is the
-- place from which to look for the next: before it are only waiters of suspect clients. A client
-- is there while it has waiters: `base`, the last place given before it came (a waiter at or before
-- that belongs to an earlier, silent life of the client, and counts no more), and `passed`, the
-- first place where it was passed over as suspect.
--
-- A waiter or a client that cannot be read counts as absent: whoever it was asks again.
--
-- in:       call sub find now nowText write NO_LIMIT entries hash
-- out:      queue
-- commands: HGETALL HMGET ZADD ZRANGE ZRANGEBYSCORE ZREM
-- No queue has so many places: then its sums are not ours, and all fields are looked at.
local FAR = 1000000000
local queue = {}

-- So many places without a waiter to serve are passed in one call, and so many silent clients
-- looked at: what is left is for the next call. Until then the head of the queue is not known:
-- nothing is served, and nothing passes it.
local MOST_PASSED = 256
local MOST_SILENT = 64

local function digits(place) return string.format('%016.0f', place) end

function queue.client(state, id)
  local client = state.clients[id]
  if client == nil then
    local text = hash.get(state, 'c' .. id)
    client = false
    if text and #text == 81 and find(text, '^%d+[as]$') then
      client = {
        gone = tonumber(sub(text, 1, 16)), touch = sub(text, 17, 32),
        base = tonumber(sub(text, 33, 48)), passed = tonumber(sub(text, 49, 64)),
        waiting = tonumber(sub(text, 65, 80)), suspect = sub(text, 81) == 's',
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
  if not text or find(text, '%D') ~= 33 then return nil end
  return entries.read({ since = sub(text, 1, 16), place = place }, sub(text, 17))
end

-- Where the waiter of an owner stands.
local function placeOf(state, owner)
  local place = hash.get(state, 'o' .. owner)
  return place and #place == 16 and find(place, '^%d+$') and tonumber(place) or nil
end

-- The places from this one on, in order.
function queue.placesFrom(state, first)
  local fields = state.hasHash and call('HGETALL', state.key) or {}
  for at = 1, #fields, 2 do
    if state.fields[fields[at]] == nil then state.fields[fields[at]] = fields[at + 1] end
  end
  local places = {}
  for field, value in pairs(state.fields) do
    local place = value and #field == 17 and find(field, '^w%d+$') and tonumber(sub(field, 2))
    if place and place >= first then places[#places + 1] = place end
  end
  table.sort(places)
  return places
end

function queue.dropEntry(state, place, owner)
  hash.set(state, 'w' .. digits(place), false)
  hash.set(state, 'o' .. owner, false)
  state.entries, state.isChanged = math.max(0, state.entries - 1), true
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

-- The first waiter whose client is not suspect; and whether the search for it was not finished.
function queue.head(state)
  local place, entry, far = state.at, nil, nil
  while state.entries > 0 and place <= state.order do
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
    if state.order - place > FAR then
      far = far or queue.placesFrom(state, place)
      while far[1] and far[1] < place do table.remove(far, 1) end
      place = far[1] or state.order + 1
    end
    -- The longer nothing is found, the more places are read at once.
    if state.fields['w' .. digits(place)] == nil and state.hasHash then
      queue.readAhead(state, place, math.min(place - state.at, MOST_PASSED))
    end
  end
  if place ~= state.at then
    state.at, state.isChanged = place, true
  end
  return entry, not entry and state.entries > 0 and place <= state.order
end

function queue.readAhead(state, place, many)
  local fields = {}
  for ahead = 1, many do fields[ahead] = 'w' .. digits(place + ahead - 1) end
  for at, text in ipairs(call('HMGET', state.key, unpack(fields))) do
    if state.fields[fields[at]] == nil then state.fields[fields[at]] = text end
  end
end

-- The end of a client's patience moves with its every word; what is kept in order is a time before
-- which it has not come, and of the least of them `bound`.
function queue.watch(state, id, goneUs)
  if state.bound == NO_LIMIT then state.isWatched = true end
  state.bound = math.min(state.bound, goneUs)
  write('ZADD', hash.companion(state, 'g'), string.format('%.0f', goneUs), id)
end

function queue.add(state, entry, goneUs)
  local id, owner, place = entry.client, entry.owner, state.order + 1
  local before = placeOf(state, owner)
  if before then queue.dropEntry(state, before, owner) end
  local client = queue.client(state, id)
  if not client then
    client = { gone = goneUs, touch = entry.touch, base = state.order, passed = 0, waiting = 0 }
    state.clients[id] = client
    queue.watch(state, id, goneUs)
  else
    client.touch = math.max(client.touch, entry.touch)
    client.gone = math.max(client.gone, goneUs)
  end
  hash.need(state, goneUs)
  client.waiting, client.isChanged = client.waiting + 1, true
  if state.entries == 0 then state.at = place end
  state.order, state.waiting, state.entries = place, state.waiting + 1, state.entries + 1
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

-- Any word of a client: its waiters are served again, and its silence starts anew.
function queue.setAlive(state, id, periods)
  local client = state.waiting > 0 and queue.client(state, id)
  if not client then return end
  if client.passed > 0 then queue.lookBack(state, client) end
  client.suspect, client.isChanged = false, true
  local goneUs = now + periods * client.touch
  -- Only a clock that was set back brings it forward.
  if goneUs < client.gone then queue.watch(state, id, goneUs) end
  client.gone = goneUs
  hash.need(state, client.gone)
end

-- Its waiters keep their places, but are passed over.
function queue.setSuspect(state, id)
  local client = state.waiting > 0 and queue.client(state, id)
  if client then client.suspect, client.isChanged = true, true end
end

-- Its waiters that were passed over are looked at again.
function queue.lookBack(state, client)
  state.at, state.isChanged = math.min(state.at, client.passed), true
  client.passed = 0
end

-- Drops the clients that were silent for too long, once in a call. Their waiters go when somebody
-- looks at them.
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
