-- The state of one name in a hash of its own, when it is more than one lean holder. Its fields:
--   x  the exclusive holder   h<owner>  a shared one   s  the shared ones in sum   m  the mark
--   q  the queue in sum   w<place>  a waiter   o<owner>  its place   c<client>  a client that waits
--   t  the end of the last tombstone   u  when the hash expires, and what belongs to it:
-- e  shared holders by expiry (token and owner)   g  waiting clients by the end of patience
-- t<owner>  a tombstone.
--
-- in:       call sub now register texts put write NO_LIMIT entries
-- out:      hash
-- commands: DEL HDEL HGET HMGET HSET PEXPIREAT
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
  state.fields[field], state.dirty[#state.dirty + 1] = value, field
end

-- The hash matters until then.
function hash.need(state, untilUs)
  if untilUs > state.needed then state.needed = untilUs end
end

-- When a key may go that matters until then: a little later, because the clock went on since this
-- batch read it, and a key whose time has passed already would be gone at once.
function hash.endMs(untilUs) return math.ceil(untilUs / 1000) + 100 end

-- The owner and the client that the command is about are read along, and the waiter that was next.
function hash.load(name, owner, client)
  local text = texts[name]
  local state = {
    name = name, key = register .. ':' .. name, hasHash = false, fields = {}, dirty = {},
    clients = {}, count = 0, waiting = 0, entries = 0, order = 0, at = 1, bound = NO_LIMIT,
    buried = 0, untilMs = 0, needed = 0,
  }
  if not text then return state end
  if sub(text, 1, 1) ~= '=' then
    state.exclusive = entries.holder(text)
    return state
  end
  local next, place, id = 'w' .. sub(text, 2), 'o' .. owner, 'c' .. client
  local found = call('HMGET', state.key, 'u', 'x', 'q', 's', 'm', 't', next, place, id)
  if not found[1] then return state end
  local fields, exclusive, queue, mark = state.fields, found[2], found[3], found[5]
  state.hasHash, state.untilMs = true, tonumber(found[1])
  fields.s, fields[next], fields[place], fields[id] = found[4], found[7], found[8], found[9]
  if exclusive then state.exclusive = entries.holder(exclusive) end
  if queue then
    local waiting, order, at, many, bound = string.match(queue, '^(%d+) (%d+) (%d+) (%d+) (%d+)')
    state.waiting, state.order, state.at = tonumber(waiting), tonumber(order), tonumber(at)
    state.entries, state.bound = tonumber(many), tonumber(bound)
  end
  if fields.s then state.count = tonumber(string.match(fields.s, '^%d+')) end
  if mark then
    local untilUs, token = tonumber(sub(mark, 1, 16)), tonumber(sub(mark, 17, 32))
    state.mark = { untilUs = untilUs, token = token, meta = sub(mark, 33) }
  end
  state.buried = tonumber(found[6] or 0)
  return state
end

function hash.saveFields(state)
  local writes, drops, last, drop = {}, {}, 0, 0
  for _, field in ipairs(state.dirty) do
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
  local holder = state.exclusive
  if not (holder or state.count > 0 or state.waiting > 0 or state.mark or state.buried > now) then
    if state.hasHash or state.isShared or state.isWatched then
      call('DEL', state.key, hash.companion(state, 'e'), hash.companion(state, 'g'))
    end
    if texts[state.name] then put(state.name, false) end
    return
  end
  if hash.isLean(state) then
    if holder.isNew then put(state.name, entries.text(holder)) end
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
      local text = string.format('%.0f ', client.gone) .. client.touch .. ' ' .. client.base
        .. ' ' .. client.passed .. ' ' .. client.waiting .. (client.suspect and ' s' or ' a')
      hash.set(state, 'c' .. id, text)
    end
  end
  if state.isQueueChanged then
    local sums = state.waiting .. ' ' .. state.order .. ' ' .. state.at .. ' ' .. state.entries
    hash.set(state, 'q', sums .. string.format(' %.0f', state.bound))
  end
  if not state.dirty[1] and state.hasHash then return end
  local untilMs = state.untilMs
  if not (holder or state.count > 0 or state.waiting > 0 or state.mark) then
    -- With nothing left but tombstones, it goes with the last of them.
    untilMs = hash.endMs(state.buried)
  elseif hash.endMs(state.needed) > untilMs then
    -- Half as long again, so that not every command has to move the end.
    untilMs = hash.endMs(state.needed + (state.needed - now) / 2)
  end
  local isMoved = untilMs ~= state.untilMs
  -- Never dropped, so that the hash and its expiry outlive the rest of the fields.
  if isMoved then hash.set(state, 'u', untilMs) end
  hash.saveFields(state)
  if isMoved then call('PEXPIREAT', state.key, untilMs) end
  if state.isShared or isMoved and state.count > 0 then
    call('PEXPIREAT', hash.companion(state, 'e'), untilMs)
  end
  if state.isWatched or isMoved and state.bound < NO_LIMIT then
    call('PEXPIREAT', hash.companion(state, 'g'), untilMs)
  end
  if not state.hasHash or state.isHandedOff then put(state.name, '=' .. state.at) end
end
