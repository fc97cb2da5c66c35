-- A mutex with waiters, where nothing else is to be thought of: its holder confirms, or releases
-- and the next one gets it, or one more comes to wait. As the lean paths do, it leaves what it
-- cannot decide as it was. The texts are those of state.lua and queue.lua, read by their positions.
--
-- in:       call try sub find register now format flags nowText raise learn nextToken spanOf
--           LONGEST put write isOurs
-- commands: EXISTS HDEL HGET HMGET HSET PUBLISH ZADD
-- returns:  the function that decides a command, or gives nil
local NONE = '0000000000000000'
local SPAN = '^(%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) '

-- Whether the name is held, nobody's time is over, and there are at most waiters and tombstones
-- beside.
local function isCalm(sums, holder)
  if not sums or not holder or sub(sums, 1, 1) ~= '-' then return false end
  if #sums ~= 113 or find(sums, '%D', 2) or not isOurs(holder) then return false end
  if nowText >= sub(sums, 2, 17) then return false end
  local form = sub(holder, 1, 1)
  if form == 'h' or form == 'u' then return nowText < sub(holder, 34, 49) end
  if form == '=' then return false end
  return sub(holder, 2, 17) + (form == 'f' and sub(holder, 18, 33) or sub(holder, 34, 49)) > now
end

local function isOwner(holder, owner)
  local form = sub(holder, 1, 1)
  local start = form == 'f' and 35 or form == '+' and 51 or 67
  return sub(holder, start, start + #owner - 1) == owner
end

-- Where another program uses the key, nothing is found, and the general rules say so.
local function confirm(key, command)
  local found = try('HMGET', key, 'k', 'x')
  local sums, holder = found[1], found[2]
  if not isCalm(sums, holder) or not isOwner(holder, sub(command, 2)) then return nil end
  local form, expiry, span = sub(holder, 1, 1), sub(holder, 34, 49), '1'
  if form ~= 'u' and form ~= 'h' then return nil end
  if sub(holder, 66, 66) ~= 'x' then
    span = string.match(holder, '^%S+ %S+ %d+ %d+ %d+ %d+ (%d+)', 67)
    if not span then return nil end
  end
  if form == 'u' then
    expiry = format('%016.0f', math.max(expiry, now + sub(holder, 50, 65)))
    if #expiry > 16 or expiry > sub(sums, 18, 33) then return nil end
    write('HSET', key, 'x', 'h' .. sub(holder, 2, 33) .. expiry .. sub(holder, 50))
  end
  local waiting = sub(sums, 34, 49) == NONE and ' 0 ' or ' 1 '
  return 'N' .. format('%.0f', expiry - now) .. waiting .. sub(holder, 18, 33) .. ' ' .. span
end

local function handOff(key, name, command, at)
  local found = try('HMGET', key, 'k', 'x', 'w' .. at)
  local sums, holder, waiter, span = found[1], found[2], found[3], '1'
  if not waiter or not isCalm(sums, holder) or not isOwner(holder, sub(command, 2)) then
    return nil
  end
  if find(waiter, '%D') ~= 33 then return nil end
  local letter, owner, id, offer = sub(waiter, 33, 33), nil, nil, nil
  if letter == 'x' then
    owner, id, offer = string.match(waiter, '^(%S+) (%S+) (%d+)', 34)
  elseif letter == 'e' then
    local weight, limit, _
    owner, id, offer, _, weight, limit, span = string.match(waiter, SPAN, 34)
    if not owner or tonumber(weight) > tonumber(limit) then return nil end
  end
  if not owner or #offer > 16 or #span > 16 then return nil end
  local expiry = format('%016.0f', now + offer)
  if #expiry > 16 or sub(sums, 66, 81) ~= at or expiry > sub(sums, 18, 33) then return nil end
  -- Only to a client that is alive, and to a waiter of its present life.
  local client = call('HGET', key, 'c' .. id)
  if not client or sub(client, 81) ~= 'a' or find(client, '%D') ~= 81 then return nil end
  if at <= sub(client, 33, 48) then return nil end
  local token = nextToken()
  if not token then return nil end
  local tokenText = token == now and nowText or format('%016.0f', token)
  local times = ' ' .. tokenText .. ' ' .. span .. ' ' .. nowText .. ' ' .. expiry .. ' '
  if call('PUBLISH', id, 'g' .. owner .. times .. name) == 0 and flags % 2 == 0 then return nil end
  raise(token + span - 1)
  local mine, after = sub(client, 65, 80) - 1, format('%016d', at + 1)
  local waiting, taken = sub(sums, 34, 49), sub(sums, 82, 97)
  local left = format('%016d', waiting - 1)
  taken = taken == waiting and left or format('%016d', taken - 1)
  sums = sub(sums, 1, 33) .. left .. sub(sums, 50, 65) .. after .. taken .. sub(sums, 98)
  holder = 'u' .. nowText .. tokenText .. expiry .. sub(waiter, 17)
  if mine == 0 then
    call('HDEL', key, 'w' .. at, 'o' .. owner, 'c' .. id)
    call('HSET', key, 'k', sums, 'x', holder)
  else
    client = sub(client, 1, 64) .. format('%016d', mine) .. 'a'
    call('HDEL', key, 'w' .. at, 'o' .. owner)
    call('HSET', key, 'k', sums, 'x', holder, 'c' .. id, client)
  end
  put(name, '=' .. after)
  return 'R' .. offer
end

local function wait(key, name, command)
  if nowText > sub(command, 2, 17) or not spanOf(command) then return nil end
  local owner, id, offer, touch = string.match(command, '^(%S+) (%S+) (%d+) (%d+)', 51)
  if LONGEST - offer < 0 or LONGEST - 4 * touch < 0 then return nil end
  local found = try('HMGET', key, 'k', 'x', 'o' .. owner, 'c' .. id)
  local sums, holder, client = found[1], found[2], found[4]
  if found[3] or not isCalm(sums, holder) or isOwner(holder, owner .. ' ') then return nil end
  -- Who has a tombstone is told by others.
  local grave = register .. 't' .. owner .. ':' .. name
  if nowText < sub(sums, 98, 113) and call('EXISTS', grave) == 1 then return nil end
  local bound, last, isNew = sub(sums, 2, 17), sub(sums, 50, 65), not client
  if isNew then
    -- The first of all clients is left to others.
    if bound == '9007199254740991' then return nil end
    client = NONE .. format('%016.0f', touch) .. last .. NONE .. NONE .. 'a'
  end
  if sub(client, 81) ~= 'a' or find(client, '%D') ~= 81 then return nil end
  if sub(client, 49, 64) ~= NONE then return nil end
  if tonumber(touch) > tonumber(sub(client, 17, 32)) then return nil end
  local gone = format('%016.0f', now + 3 * sub(client, 17, 32))
  -- One that ends earlier than before shows that the clock was set back.
  if gone > sub(sums, 18, 33) or gone < sub(client, 1, 16) then return nil end
  if not learn(tonumber(sub(command, 18, 33))) or not nextToken() then return nil end
  if gone < bound then bound = gone end
  local waiting, taken, place = sub(sums, 34, 49), sub(sums, 82, 97), format('%016d', last + 1)
  local at, more = taken == NONE and place or sub(sums, 66, 81), format('%016d', waiting + 1)
  taken = taken == waiting and more or format('%016d', taken + 1)
  sums = '-' .. bound .. sub(sums, 18, 33) .. more .. place .. at .. taken .. sub(sums, 98)
  client = gone .. sub(client, 17, 64) .. format('%016d', sub(client, 65, 80) + 1) .. 'a'
  local entry = nowText .. sub(command, 34)
  if isNew then
    -- First, because it may be the key of another program: then the general rules say so.
    local added = try('ZADD', register .. 'g:' .. name, gone, id)
    if type(added) == 'table' and added.err then return nil end
  end
  local done =
    try('HSET', key, 'k', sums, 'w' .. place, entry, 'o' .. owner, place, 'c' .. id, client)
  if type(done) == 'table' and done.err then return '!' .. done.err end
  return 'Q' .. format('%d ', waiting) .. holder
end

return function(name, operation, command, mark)
  local key = register .. ':' .. name
  if operation == 'c' then return confirm(key, command) end
  if operation == 'r' then return handOff(key, name, command, sub(mark, 2)) end
  if operation == 'X' or operation == 'E' then return wait(key, name, command) end
end
