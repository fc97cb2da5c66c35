-- The state of one name in a hash of its own, when it is more than one lean holder. Its fields:
--   k  the sums   x  the exclusive holder   h<owner>  a shared one   s  their sums   m  the mark
--   w<place>  a waiter   o<owner>  its place   c<client>  a client that waits
-- The sums are `*` if there are shared holders or a mark, else `-`, and then, of 16 digits each: a
-- time before which no client has been silent for too long, the time until which the hash is kept,
-- how many wait, the last place, the place to look at next, how many places are taken, and the end
-- of the last tombstone. Beside it, while needed:
-- e  shared holders by expiry and by token   u  those not confirmed, by client (shared.lua)
-- g  waiting clients by the end of patience   t<owner>  a tombstone.
--
-- in:       call sub find now register texts put write isOurs NO_LIMIT entries refuse
-- out:      hash
-- commands: EXISTS HDEL HGET HMGET HSET PEXPIREAT UNLINK
-- Even, and well below what one call may take.
local CHUNK = 2000
local hash = {}

function hash.companion(state, letter) return register .. letter .. ':' .. state.name end

-- Fields are read at most once, and written once, by `save`: what a command wrote and dropped again
-- was never there.
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

-- The hash matters until then.
function hash.need(state, untilUs)
  if untilUs > state.needed then state.needed = untilUs end
end

-- When a key may go that matters until then: a little later, because the clock went on since this
-- batch read it, and a key whose time has passed already would be gone at once.
function hash.endMs(untilUs) return math.ceil(untilUs / 1000) + 100 end

-- Before a name gets a hash: what stands in its keys already goes, if it is ours.
local function clear(state)
  local byExpiry, offers = hash.companion(state, 'e'), hash.companion(state, 'u')
  local byPatience = hash.companion(state, 'g')
  if call('EXISTS', state.key, byExpiry, offers, byPatience) == 0 then return end
  local remove = (function()
    include('leftover')
  end)()
  remove(state.key, byExpiry, offers, byPatience)
end

-- The owner and the client that the command is about are read along, and the waiter that was next.
function hash.load(name, owner, client)
  local text = texts[name]
  local state = {
    name = name, key = register .. ':' .. name, hasHash = false, fields = {}, dirty = {},
    clients = {}, count = 0, waiting = 0, entries = 0, order = 0, at = 1, bound = NO_LIMIT,
    buried = 0, untilUs = 0, needed = 0, skips = 0,
  }
  if not text or sub(text, 1, 1) ~= '=' then
    if text and not isOurs(text) then refuse('field ' .. name .. ' of ' .. register) end
    clear(state)
    state.exclusive = text and entries.holder(text) or nil
    return state
  end
  local next, place, id = 'w' .. sub(text, 2), 'o' .. owner, 'c' .. client
  local found = call('HMGET', state.key, 'k', 'x', 's', 'm', next, place, id)
  local sums, exclusive, fields, mark = found[1], found[2], state.fields, found[4]
  if not sums then
    if not isOurs(text) then refuse('field ' .. name .. ' of ' .. register) end
    clear(state)
    return state
  end
  if #sums ~= 113 or not find(sums, '^[-*]%d+$') then refuse('field k of ' .. state.key) end
  state.hasHash = true
  state.bound, state.untilUs = tonumber(sub(sums, 2, 17)), tonumber(sub(sums, 18, 33))
  state.waiting, state.order = tonumber(sub(sums, 34, 49)), tonumber(sub(sums, 50, 65))
  state.at, state.entries = tonumber(sub(sums, 66, 81)), tonumber(sub(sums, 82, 97))
  if state.order >= NO_LIMIT then refuse('field k of ' .. state.key) end
  state.at = math.min(state.at, state.order + 1)
  state.buried = tonumber(sub(sums, 98, 113))
  fields.s, fields[next], fields[place], fields[id] = found[3], found[5], found[6], found[7]
  if exclusive then
    if not isOurs(exclusive) or sub(exclusive, 1, 1) == '=' then
      refuse('field x of ' .. state.key)
    end
    state.exclusive = entries.holder(exclusive)
  end
  if fields.s then
    if not find(fields.s, '^%d+ %d+ %d+[ %d:]*$') then refuse('field s of ' .. state.key) end
    state.count = tonumber(string.match(fields.s, '^%d+'))
  end
  if mark then
    if #mark < 32 or find(sub(mark, 1, 32), '%D') then refuse('field m of ' .. state.key) end
    local untilUs, token = tonumber(sub(mark, 1, 16)), tonumber(sub(mark, 17, 32))
    state.mark = { untilUs = untilUs, token = token, meta = sub(mark, 33) }
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
  return state.entries == 0 and not state.mark and state.buried <= now
end

-- Writes what the batch made of the state, once.
function hash.save(state)
  local holder, isLean = state.exclusive, hash.isLean(state)
  local isUsed = holder or state.count > 0 or state.waiting > 0 or state.mark or state.buried > now
  if isLean or not isUsed then
    -- What belongs to a hash may be there before it.
    if state.hasHash or state.isShared or state.isWatched then
      -- What waited there may be many fields still: they are freed in the background.
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
  local untilUs, isMore = state.untilUs, state.count > 0 or state.mark
  if not (holder or isMore or state.waiting > 0) then
    -- With nothing left but tombstones, it goes with the last of them.
    untilUs = state.buried
  elseif state.needed > untilUs then
    -- Half as long again, so that not every command has to move the end.
    untilUs = math.floor(state.needed + (state.needed - now) / 2)
  end
  local isMoved = untilUs ~= state.untilUs
  local times = string.format('%016.0f%016.0f', state.bound, untilUs)
  local places = string.format('%016.0f%016.0f%016.0f', state.waiting, state.order, state.at)
  local rest = string.format('%016.0f%016.0f', state.entries, state.buried)
  local letter = isMore and '*' or '-'
  hash.set(state, 'k', letter .. times .. places .. rest)
  hash.saveFields(state)
  if isMoved then call('PEXPIREAT', state.key, hash.endMs(untilUs)) end
  if state.isShared or isMoved and state.count > 0 then
    call('PEXPIREAT', hash.companion(state, 'e'), hash.endMs(untilUs))
    call('PEXPIREAT', hash.companion(state, 'u'), hash.endMs(untilUs))
  end
  if state.isWatched or isMoved and state.bound < NO_LIMIT then
    call('PEXPIREAT', hash.companion(state, 'g'), hash.endMs(untilUs))
  end
  if not state.hasHash or state.isHandedOff then
    put(state.name, string.format('=%016.0f', state.at))
  end
end
