-- The rules of commands that are rare, and what they look at: all holders, all waiters.
--
-- in:       now entries queue shared holders ending emit blockage serve
-- returns:  the functions
local part = {}

local function text(number) return string.format('%.0f', number) end

local function eachHolder(state)
  if state.exclusive then return { entries.complete(state.exclusive) } end
  return state.count > 0 and shared().each(state) or {}
end

-- In the order of the queue.
local function eachWaiter(state)
  local waiters = {}
  if state.waiting == 0 then return waiters end
  for _, place in ipairs(queue.placesFrom(state, 0)) do
    local entry = queue.entry(state, place)
    if entry and queue.isValid(state, entry) then waiters[#waiters + 1] = entry end
  end
  return waiters
end

local function emitNews(state, client, kind, owner, token, detail)
  emit(client, kind .. cjson.encode({ state.name, owner, text(token), detail }))
end

-- What a mark says, every waiter may know: the work is done, there is nothing to wait for.
function part.endWaiters(state)
  for _, entry in ipairs(eachWaiter(state)) do
    queue.drop(state, entry)
    emitNews(state, entry.client, 'm', entry.owner, state.mark.token, state.mark.meta)
  end
end

function part.touch(state, client)
  local parts, waiting = {}, queue.client(state, client)
  for _, entry in ipairs(eachHolder(state)) do
    if entry.client == client and not entry.confirmed then
      local grant = { entry.owner, text(entry.token), text(entry.span), text(entry.granted) }
      parts[#parts + 1] = ' ' .. table.concat(grant, ' ') .. ' ' .. text(entry.expiry)
    end
  end
  local counts = (waiting and waiting.waiting or 0) .. ' ' .. #parts
  return 'T' .. counts .. table.concat(parts) .. blockage(state)
end

function part.revoke(state, token, reason)
  if state.mark and state.mark.token == token then
    ending().dropMark(state)
    return 'V1'
  end
  for _, entry in ipairs(eachHolder(state)) do
    if token >= entry.token and token < entry.token + entry.span then
      holders.drop(state, entry)
      ending().bury(state, entry.owner, entry.expiry, reason)
      emitNews(state, entry.client, 'v', entry.owner, entry.token, reason)
      serve(state)
      return 'V1'
    end
  end
  return 'V0'
end

function part.inspect(state)
  local mark, held, waiting = state.mark, {}, {}
  for place, entry in ipairs(eachHolder(state)) do held[place] = entries.text(entry) end
  for place, entry in ipairs(eachWaiter(state)) do waiting[place] = entry.since .. entry.request end
  local left = mark and text(mark.token) .. ' ' .. text(mark.untilUs - now) .. ' ' .. mark.meta
  return { left or '', held, waiting }
end

return part
