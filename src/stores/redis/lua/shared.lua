-- Shared holders: a field for each, their sums, and a sorted set by expiry.
--
-- in:       call sub find write isOurs entries hash refuse
-- commands: ZADD ZRANGE ZREM
-- returns:  the functions
local part = {}

local function member(entry) return string.format('%016.0f', entry.token) .. entry.owner end

-- What they weigh, how many are not confirmed, and how many have each limit.
function part.sums(state)
  if not state.sums then
    local text = hash.get(state, 's') or '0 0 0'
    local _, stop, weight, claims = find(text, '^%d+ (%d+) (%d+)')
    state.sums = { weight = tonumber(weight), claims = tonumber(claims), limits = {} }
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
  hash.set(state, 's', state.count .. weight .. sums.claims .. table.concat(parts))
end

local function count(state, entry, one)
  local sums, limit = part.sums(state), string.format('%.0f', entry.limit)
  local same = (sums.limits[limit] or 0) + one
  sums.weight = math.max(0, sums.weight + one * entry.weight)
  state.count = math.max(0, state.count + one)
  sums.limits[limit] = same > 0 and same or nil
  if not entry.confirmed then sums.claims = math.max(0, sums.claims + one) end
  saveSums(state)
end

local function store(state, entry)
  local expiry = string.format('%.0f', entry.expiry)
  hash.set(state, 'h' .. entry.owner, entries.text(entry))
  write('ZADD', hash.companion(state, 'e'), expiry, member(entry))
  state.isShared = true
end

function part.of(state, owner)
  local text = hash.get(state, 'h' .. owner)
  if not text then return nil end
  local entry = isOurs(text) and sub(text, 1, 1) ~= '=' and entries.holder(text)
  if not entry or entry.owner ~= owner then refuse('a holder in ' .. state.key) end
  return entries.complete(entry)
end

-- The holder of a member. A member without one was left by a command that failed: it goes.
local function holderOf(state, found)
  if #found < 17 or find(sub(found, 1, 16), '%D') then refuse(hash.companion(state, 'e')) end
  local entry = part.of(state, sub(found, 17))
  if not entry then call('ZREM', hash.companion(state, 'e'), found) end
  return entry
end

-- In the order of their tokens.
function part.each(state)
  local members, found = call('ZRANGE', hash.companion(state, 'e'), 0, -1), {}
  table.sort(members)
  for _, member in ipairs(members) do found[#found + 1] = holderOf(state, member) end
  return found
end

-- Ties go to the older grant: members of one score are ordered by their token.
function part.next(state)
  local found, entry
  repeat
    found = call('ZRANGE', hash.companion(state, 'e'), 0, 0)[1]
    entry = found and holderOf(state, found)
  until entry or not found
  return entry
end

function part.put(state, entry)
  count(state, entry, 1)
  store(state, entry)
end

function part.update(state, entry, confirms)
  if confirms then
    part.sums(state).claims = math.max(0, part.sums(state).claims - 1)
    saveSums(state)
  end
  store(state, entry)
end

function part.drop(state, entry)
  hash.set(state, 'h' .. entry.owner, false)
  call('ZREM', hash.companion(state, 'e'), member(entry))
  count(state, entry, -1)
end

-- Whether one more fits beside them.
function part.fits(state, request)
  local sums, limit = part.sums(state), request.limit
  for other in pairs(sums.limits) do limit = math.min(limit, tonumber(other)) end
  return sums.weight + request.weight <= limit
end

return part
