-- The rules of rare commands: touch, inspect, revoke, and the end of a wait by a mark.
--
-- in:       now entries queue shared holders push SLICE ending blockage hasMore serve
-- returns:  the functions
local part = {}

local function text(number) return string.format('%.0f', number) end

local function eachHolder(state)
  if state.exclusive then return { entries.complete(state.exclusive) } end
  return state.count > 0 and shared().each(state) or {}
end

-- All waiters, in the order of the queue.
local function eachWaiter(state)
  local waiters = {}
  if state.waiting == 0 then return waiters end
  for _, place in ipairs(queue.placesFrom(state, 0)) do
    local entry = queue.entry(state, place)
    if entry and queue.isValid(state, entry) then waiters[#waiters + 1] = entry end
  end
  return waiters
end

local function pushNews(state, client, kind, owner, token, detail)
  push(client, kind .. cjson.encode({ state.name, owner, text(token), detail }))
end

-- Ends a wait, because the work is done.
function part.endWait(state, entry)
  queue.drop(state, entry)
  pushNews(state, entry.client, 'm', entry.owner, state.mark.token, state.mark.meta)
end

-- The first offers to a client: one more than fits into a reply.
local function offers(state, client)
  local exclusive = state.exclusive
  if not exclusive then
    return state.count > 0 and shared().offers(state, client, SLICE + 1) or {}
  end
  if exclusive.confirmed or entries.complete(exclusive).client ~= client then return {} end
  return { exclusive }
end

function part.touch(state, client)
  local parts, waiting, found = {}, queue.client(state, client), offers(state, client)
  for place = 1, math.min(#found, SLICE) do
    local entry = found[place]
    if entry.expiry > now then
      local grant = { entry.owner, text(entry.token), text(entry.span), text(entry.granted) }
      parts[#parts + 1] = ' ' .. table.concat(grant, ' ') .. ' ' .. text(entry.expiry)
    end
  end
  local letter = (#found > #parts or hasMore(state)) and 't' or 'T'
  local counts = (waiting and waiting.waiting or 0) .. ' ' .. #parts
  return letter .. counts .. table.concat(parts) .. blockage(state)
end

local function holderWith(state, token)
  local exclusive = state.exclusive and entries.complete(state.exclusive)
  if not exclusive then return state.count > 0 and shared().with(state, token) end
  local isIn = token >= exclusive.token and token < exclusive.token + exclusive.span
  return isIn and exclusive
end

function part.revoke(state, token, reason)
  if state.mark and state.mark.token == token then
    ending().dropMark(state)
    return 'V1'
  end
  local entry = holderWith(state, token)
  if not entry or entry.expiry <= now then return 'V0' end
  holders.drop(state, entry)
  ending().putTombstone(state, entry.owner, entry.expiry, reason)
  pushNews(state, entry.client, 'v', entry.owner, entry.token, reason)
  serve(state)
  return 'V1'
end

function part.inspect(state)
  local mark, held, waiting = state.mark, {}, {}
  for _, entry in ipairs(eachHolder(state)) do
    if entry.expiry > now then held[#held + 1] = entries.text(entry) end
  end
  for place, entry in ipairs(eachWaiter(state)) do waiting[place] = entry.since .. entry.request end
  local left = mark and text(mark.token) .. ' ' .. text(mark.keptUntil - now) .. ' ' .. mark.meta
  return { left or '', held, waiting }
end

return part
