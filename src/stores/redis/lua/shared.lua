-- Shared holders: a field for each, their sums, and two sorted sets, so that no command reads all
-- holders to find one. `e` has each holder twice: by its expiry, a member `token owner`; and by its
-- token with a score below 0, a member `t` owner. `u` has the offers: `channel token owner`.
local part, BELOW_ZERO = {}, 9007199254740992

local function scoreOf(token) return format('%.0f', token - BELOW_ZERO) end
local function offerOf(holder) return holder.client .. ' ' .. tokenOf(holder) .. holder.owner end

-- The weight of all shared holders, how many are offers, and how many have each limit.
local function sums(state)
  if not state.shared then
    local text = get(state, 's') or '0 0 0'
    local weight, offers, stop = match(text, '^%d+ (%d+) (%d+)()')
    state.shared = { weight = tonumber(weight), offers = tonumber(offers), limits = {} }
    for limit, many in string.gmatch(sub(text, stop), ' (%d+):(%d+)') do
      state.shared.limits[limit] = tonumber(many)
    end
  end
  return state.shared
end

local function tally(state, holder, one, offers)
  local all, limit = sums(state), format('%.0f', holder.limit)
  local same = (all.limits[limit] or 0) + one
  all.weight = math.max(0, all.weight + one * holder.weight)
  all.offers = math.max(0, all.offers + offers)
  all.limits[limit] = same > 0 and same or nil
  state.count = math.max(0, state.count + one)
  local parts = { state.count .. format(' %.0f ', all.weight) .. all.offers }
  for other, many in pairs(all.limits) do parts[#parts + 1] = ' ' .. other .. ':' .. many end
  set(state, 's', table.concat(parts))
end

local function store(state, holder, ...)
  local expiry = digits(holder.expiry)
  if not state.hasHash then clear(state) end
  set(state, 'h' .. holder.owner, holder.text)
  write('ZADD', companion(state, 'e'), expiry, tokenOf(holder) .. holder.owner, ...)
  need(state, expiry)
  state.isShared = true
end

function part.of(state, owner)
  local text = get(state, 'h' .. owner)
  if not text then return nil end
  local holder = text ~= 'F' and isOwnFormat(text) and complete(holderFrom(text))
  if not holder or holder.owner ~= owner then refuse('a holder in ' .. state.key) end
  return holder
end

-- The holder of a member of a sorted set. A member without a holder was left by a command that
-- failed: it is removed.
local function holderAt(state, letter, member, start)
  local holder = part.of(state, sub(member, start))
  if not holder then call('ZREM', companion(state, letter), member) end
  return holder
end

function part.each(state)
  local found, key = {}, companion(state, 'e')
  for _, member in ipairs(call('ZRANGE', key, '-inf', '(0', 'BYSCORE')) do
    found[#found + 1] = holderAt(state, 'e', member, 2)
  end
  return found
end

-- The holder whose span has this token. Spans do not overlap, so it is the last holder that begins
-- at or before the token.
function part.with(state, token)
  local key = companion(state, 'e')
  local member = call('ZRANGE', key, scoreOf(token), '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
  local holder = member and holderAt(state, 'e', member, 2)
  return holder and token < tokenOf(holder) + spanOf(holder) and holder or nil
end

function part.offers(state, client, most)
  if sums(state).offers == 0 then return {} end
  local found, key = {}, companion(state, 'u')
  local from, to = '[' .. client .. ' ', '(' .. client .. '!'
  for _, offer in ipairs(call('ZRANGE', key, from, to, 'BYLEX', 'LIMIT', 0, most)) do
    local holder = holderAt(state, 'u', offer, #client + 18)
    if holder and not holder.confirmed then found[#found + 1] = holder end
  end
  return found
end

-- Of two holders that expire together the older grant comes first, because members with one score
-- are ordered by token.
function part.next(state)
  local key, member, holder = companion(state, 'e'), nil, nil
  repeat
    member = call('ZRANGE', key, 0, '+inf', 'BYSCORE', 'LIMIT', 0, 1)[1]
    if member and (#member < 17 or find(sub(member, 1, 16), '%D')) then refuse(key) end
    holder = member and holderAt(state, 'e', member, 17)
  until holder or not member
  return holder
end

function part.put(state, holder)
  tally(state, holder, 1, holder.confirmed and 0 or 1)
  store(state, holder, scoreOf(tokenOf(holder)), 't' .. holder.owner)
  if not holder.confirmed then write('ZADD', companion(state, 'u'), 0, offerOf(holder)) end
end

function part.update(state, holder, wasOffer)
  if wasOffer then
    tally(state, holder, 0, -1)
    call('ZREM', companion(state, 'u'), offerOf(holder))
  end
  store(state, holder)
end

function part.drop(state, holder)
  set(state, 'h' .. holder.owner, false)
  call('ZREM', companion(state, 'e'), tokenOf(holder) .. holder.owner, 't' .. holder.owner)
  if not holder.confirmed then call('ZREM', companion(state, 'u'), offerOf(holder)) end
  tally(state, holder, -1, holder.confirmed and 0 or -1)
end

function part.fits(state, asked)
  local limit = asked.limit
  for other in pairs(sums(state).limits) do limit = math.min(limit, tonumber(other)) end
  return sums(state).weight + asked.weight <= limit
end

return part
