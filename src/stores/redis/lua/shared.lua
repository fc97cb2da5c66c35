-- Shared holders: a field for each, their sums, and two sorted sets, so that no command reads all
-- holders to find one. `e` has each holder twice: by its expiry (BY_EXPIRY), and by its token
-- (BY_TOKEN) with a score below 0. `u` has the holders that are not confirmed, by client.
--
-- in:       call sub find digits write isOurs entries hash refuse
-- commands: ZADD ZRANGE ZREM
-- returns:  the functions
local part = {}
local BELOW_ZERO = 9007199254740992

local function tokenScore(token) return string.format('%.0f', token - BELOW_ZERO) end

local function offerOf(entry) return entry.client .. ' ' .. digits(entry.token) .. entry.owner end

-- The weight of all shared holders, how many are not confirmed, and how many have each limit.
function part.sums(state)
  if not state.sums then
    local text = hash.get(state, 's') or '0 0 0'
    local _, stop, weight, offers = find(text, '^%d+ (%d+) (%d+)')
    state.sums = { weight = tonumber(weight), offers = tonumber(offers), limits = {} }
    for limit, count in string.gmatch(sub(text, stop + 1), ' (%d+):(%d+)') do
      state.sums.limits[limit] = tonumber(count)
    end
  end
  return state.sums
end

local function saveSums(state)
  local parts, sums = {}, state.sums
  for limit, count in pairs(sums.limits) do parts[#parts + 1] = ' ' .. limit .. ':' .. count end
  local weight = string.format(' %.0f ', sums.weight)
  hash.set(state, 's', state.count .. weight .. sums.offers .. table.concat(parts))
end

local function count(state, entry, one)
  local sums, limit = part.sums(state), string.format('%.0f', entry.limit)
  local same = (sums.limits[limit] or 0) + one
  sums.weight = math.max(0, sums.weight + one * entry.weight)
  state.count = math.max(0, state.count + one)
  sums.limits[limit] = same > 0 and same or nil
  if not entry.confirmed then sums.offers = math.max(0, sums.offers + one) end
  saveSums(state)
end

local function store(state, entry, ...)
  local expiry, key = string.format('%.0f', entry.expiry), hash.companion(state, 'e')
  hash.set(state, 'h' .. entry.owner, entries.text(entry))
  write('ZADD', key, expiry, digits(entry.token) .. entry.owner, ...)
  state.isShared = true
end

function part.of(state, owner)
  local text = hash.get(state, 'h' .. owner)
  if not text then return nil end
  local entry = isOurs(text) and sub(text, FULL.form) ~= '=' and entries.holder(text)
  if not entry or entry.owner ~= owner then refuse('a holder in ' .. state.key) end
  return entries.complete(entry)
end

-- The holder of a member of a sorted set; the owner starts at the byte `start`. A member without a
-- holder was left by a command that failed: it is removed.
local function holderOf(state, letter, member, start)
  local entry = part.of(state, sub(member, start))
  if not entry then call('ZREM', hash.companion(state, letter), member) end
  return entry
end

-- All shared holders in the order of their tokens.
function part.each(state)
  local found, members = {}, call('ZRANGE', hash.companion(state, 'e'), '-inf', '(0', 'BYSCORE')
  for _, member in ipairs(members) do
    found[#found + 1] = holderOf(state, 'e', member, BY_TOKEN.owner)
  end
  return found
end

-- The holder whose span has this token. Spans do not overlap, so it is the last holder that begins
-- at or before the token.
function part.with(state, token)
  local key, score = hash.companion(state, 'e'), tokenScore(token)
  local found = call('ZRANGE', key, score, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
  local entry = found and holderOf(state, 'e', found, BY_TOKEN.owner)
  return entry and token < entry.token + entry.span and entry or nil
end

-- The first offers to this client.
function part.offers(state, client, most)
  if part.sums(state).offers == 0 then return {} end
  local key, from, to = hash.companion(state, 'u'), '[' .. client .. ' ', '(' .. client .. '!'
  local found, offers = {}, call('ZRANGE', key, from, to, 'BYLEX', 'LIMIT', 0, most)
  for _, offer in ipairs(offers) do
    local entry = holderOf(state, 'u', offer, #client + 18)
    if entry and not entry.confirmed then found[#found + 1] = entry end
  end
  return found
end

-- The holder that expires first. Of two that expire together the older grant comes first, because
-- members with one score are ordered by token.
function part.next(state)
  local key, found, entry = hash.companion(state, 'e'), nil, nil
  repeat
    found = call('ZRANGE', key, 0, '+inf', 'BYSCORE', 'LIMIT', 0, 1)[1]
    local token = found and sub(found, BY_EXPIRY.token)
    if found and (#found < BY_EXPIRY.owner.start or find(token, '%D')) then refuse(key) end
    entry = found and holderOf(state, 'e', found, BY_EXPIRY.owner)
  until entry or not found
  return entry
end

function part.put(state, entry)
  count(state, entry, 1)
  store(state, entry, tokenScore(entry.token), 't' .. entry.owner)
  if not entry.confirmed then write('ZADD', hash.companion(state, 'u'), 0, offerOf(entry)) end
end

function part.update(state, entry, confirms)
  if confirms then
    part.sums(state).offers = math.max(0, part.sums(state).offers - 1)
    saveSums(state)
    call('ZREM', hash.companion(state, 'u'), offerOf(entry))
  end
  store(state, entry)
end

function part.drop(state, entry)
  hash.set(state, 'h' .. entry.owner, false)
  local member = digits(entry.token) .. entry.owner
  call('ZREM', hash.companion(state, 'e'), member, 't' .. entry.owner)
  if not entry.confirmed then call('ZREM', hash.companion(state, 'u'), offerOf(entry)) end
  count(state, entry, -1)
end

-- Whether the request fits beside the shared holders.
function part.fits(state, request)
  local sums, limit = part.sums(state), request.limit
  for other in pairs(sums.limits) do limit = math.min(limit, tonumber(other)) end
  return sums.weight + request.weight <= limit
end

return part
