-- The state of a name in a hash of its own, if the name has more than one lean holder. Its fields:
--   k  SUMS   x  the exclusive holder   h<owner>  a shared holder   s  sums of shared holders
--   m  MARK   w<place>  WAITER   o<owner>  the place of its waiter   c<client>  CLIENT
-- Keys beside the hash, while they are needed:
--   e  shared holders, by expiry and by token (shared.lua)   u  offers to shared holders, by client
--   g  waiting clients, by the time when each was silent for too long   t<owner>  TOMBSTONE
--
-- in:       call sub find now register texts put write isOurs NO_LIMIT entries refuse
-- out:      hash
-- commands: EXISTS HDEL HGET HMGET HSET PEXPIREAT UNLINK
-- How many arguments one call gets: an even number, well below the limit of Lua's stack.
local CHUNK = 2000
local hash = {}

function hash.companion(state, letter) return register .. letter .. ':' .. state.name end

-- Each field is read at most once. `save` writes it once: a field that was set and dropped again
-- in the same batch is not written.
function hash.get(state, field)
  local value = state.fields[field]
  if value == nil then
    value = state.hasHash and call('HGET', state.key, field)
    state.fields[field] = value
  end
  return value
end

function hash.set(state, field, value)
  state.fields[field], state.dirty[field] = value, true
end

-- The hash must be kept until this time.
function hash.need(state, time)
  if time > state.needed then state.needed = time end
end

-- When a key that is needed until this time may expire: 100 ms later. The clock has moved on since
-- the batch read it, and Redis deletes a key at once if its time to expire has passed.
function hash.endMs(time) return math.ceil(time / 1000) + 100 end

-- Removes keys of an earlier life of the name, before the name gets a hash.
local function clear(state)
  local byExpiry, offers = hash.companion(state, 'e'), hash.companion(state, 'u')
  local bySilence = hash.companion(state, 'g')
  if call('EXISTS', state.key, byExpiry, offers, bySilence) == 0 then return end
  local remove = (function()
    include('leftover')
  end)()
  remove(state.key, byExpiry, offers, bySilence)
end

-- One call reads the sums, the holder and the mark, and what the command needs next: the first
-- waiter, the place of the owner, and the client.
function hash.load(name, owner, client)
  local text = texts[name]
  local state = {
    name = name, key = register .. ':' .. name, hasHash = false, fields = {}, dirty = {},
    clients = {}, count = 0, waiting = 0, taken = 0, last = 0, next = 1, bound = NO_LIMIT,
    lastTombstone = 0, keptUntil = 0, needed = 0, skips = 0,
  }
  if not text or sub(text, POINTER.form) ~= '=' then
    if text and not isOurs(text) then refuse('field ' .. name .. ' of ' .. register) end
    clear(state)
    state.exclusive = text and entries.holder(text) or nil
    return state
  end
  local next, place, id = 'w' .. sub(text, POINTER.place), 'o' .. owner, 'c' .. client
  local found = call('HMGET', state.key, 'k', 'x', 's', 'm', next, place, id)
  local sums, exclusive, fields, mark = found[1], found[2], state.fields, found[4]
  if not sums then
    if not isOurs(text) then refuse('field ' .. name .. ' of ' .. register) end
    clear(state)
    return state
  end
  local isWhole = #sums == SUMS.length and find(sums, '^[-*]%d+$')
  state.last = isWhole and tonumber(sub(sums, SUMS.last)) or NO_LIMIT
  if state.last >= NO_LIMIT then refuse('field k of ' .. state.key) end
  state.hasHash = true
  state.bound = tonumber(sub(sums, SUMS.bound))
  state.keptUntil = tonumber(sub(sums, SUMS.keptUntil))
  state.waiting, state.taken = tonumber(sub(sums, SUMS.waiting)), tonumber(sub(sums, SUMS.taken))
  state.next = math.min(tonumber(sub(sums, SUMS.next)), state.last + 1)
  state.lastTombstone = tonumber(sub(sums, SUMS.lastTombstone))
  fields.s, fields[next], fields[place], fields[id] = found[3], found[5], found[6], found[7]
  if exclusive then
    if not isOurs(exclusive) or sub(exclusive, FULL.form) == '=' then
      refuse('field x of ' .. state.key)
    end
    state.exclusive = entries.holder(exclusive)
  end
  if fields.s then
    if not find(fields.s, '^%d+ %d+ %d+[ %d:]*$') then refuse('field s of ' .. state.key) end
    state.count = tonumber(string.match(fields.s, '^%d+'))
  end
  if mark then
    local times = sub(mark, MARK.keptUntil.to.token)
    if #mark < MARK.meta.before or find(times, '%D') then refuse('field m of ' .. state.key) end
    local keptUntil, token = tonumber(sub(mark, MARK.keptUntil)), tonumber(sub(mark, MARK.token))
    state.mark = { keptUntil = keptUntil, token = token, meta = sub(mark, MARK.meta) }
  end
  return state
end

function hash.saveFields(state)
  local writes, drops, last, drop = {}, {}, 0, 0
  for field in pairs(state.dirty) do
    local value = state.fields[field]
    if value then
      writes[last + 1], writes[last + 2] = field, value
      last = last + 2
    elseif state.hasHash then
      drop = drop + 1
      drops[drop] = field
    end
  end
  for first = 1, drop, CHUNK do
    call('HDEL', state.key, unpack(drops, first, math.min(first + CHUNK - 1, drop)))
  end
  for first = 1, last, CHUNK do
    write('HSET', state.key, unpack(writes, first, math.min(first + CHUNK - 1, last)))
  end
end

function hash.isLean(state)
  local holder = state.exclusive
  if state.hasHash or not holder or not holder.confirmed or state.count > 0 then return false end
  return state.taken == 0 and not state.mark and state.lastTombstone <= now
end

-- Writes the state, once for all commands of the batch. A name that needs no hash any more loses
-- its keys.
function hash.save(state)
  local holder, isLean = state.exclusive, hash.isLean(state)
  local isUsed = holder or state.count > 0 or state.waiting > 0 or state.mark
    or state.lastTombstone > now
  if isLean or not isUsed then
    -- A batch may have written the keys beside the hash before the hash itself.
    if state.hasHash or state.isShared or state.isWatched then
      -- The hash may still have many fields: UNLINK frees them in the background.
      local e, u = hash.companion(state, 'e'), hash.companion(state, 'u')
      call('UNLINK', state.key, e, u, hash.companion(state, 'g'))
    end
    if isLean and holder.isNew then put(state.name, entries.text(holder)) end
    if not isUsed and texts[state.name] then put(state.name, false) end
    return
  end
  if holder and (holder.isNew or not state.hasHash) then
    hash.set(state, 'x', entries.text(holder))
    hash.need(state, holder.expiry)
  elseif state.isVacated and not holder then
    hash.set(state, 'x', false)
  end
  for id, client in pairs(state.clients) do
    if client and client.isChanged then
      local times = string.format('%016.0f%016.0f%016.0f', client.gone, client.touch, client.base)
      local counts = string.format('%016.0f%016.0f', client.passed, client.waiting)
      hash.set(state, 'c' .. id, times .. counts .. (client.suspect and 's' or 'a'))
    end
  end
  if state.hasHash and not state.isChanged and not next(state.dirty) then return end
  local keptUntil, isMore = state.keptUntil, state.count > 0 or state.mark
  if not (holder or isMore or state.waiting > 0) then
    -- Nothing is left but tombstones: the hash expires with the last of them.
    keptUntil = state.lastTombstone
  elseif state.needed > keptUntil then
    -- Half as long again as needed: so not every command has to write a new expiry.
    keptUntil = math.floor(state.needed + (state.needed - now) / 2)
  end
  local isMoved = keptUntil ~= state.keptUntil
  local times = string.format('%016.0f%016.0f', state.bound, keptUntil)
  local places = string.format('%016.0f%016.0f%016.0f', state.waiting, state.last, state.next)
  local rest = string.format('%016.0f%016.0f', state.taken, state.lastTombstone)
  local letter = isMore and '*' or '-'
  hash.set(state, 'k', letter .. times .. places .. rest)
  hash.saveFields(state)
  if isMoved then call('PEXPIREAT', state.key, hash.endMs(keptUntil)) end
  if state.isShared or isMoved and state.count > 0 then
    call('PEXPIREAT', hash.companion(state, 'e'), hash.endMs(keptUntil))
    call('PEXPIREAT', hash.companion(state, 'u'), hash.endMs(keptUntil))
  end
  if state.isWatched or isMoved and state.bound < NO_LIMIT then
    call('PEXPIREAT', hash.companion(state, 'g'), hash.endMs(keptUntil))
  end
  if not state.hasHash or state.isHandedOff then
    put(state.name, string.format('=%016.0f', state.next))
  end
end
