-- The short path for a mutex with waiters: its holder confirms, or releases and the first waiter
-- gets the lock, or one more owner starts to wait. It decides a command only if nothing has expired
-- and no client is suspect. It works on the records of state.lua and queue.lua as texts. A command
-- that it does not decide goes on to the general rules; nothing has been written then.
--
-- in:       call try sub find register now format flags nowText raise learn nextToken spanOf
--           LONGEST put write isOurs
-- commands: EXISTS HDEL HGET HMGET HSET PUBLISH ZADD
-- returns:  the function that decides a command, or gives nil
local NONE = '0000000000000000'

-- Whether one exclusive holder has the name, neither the holder nor a client has expired, and there
-- is nothing else but waiters and tombstones.
local function isCalm(sums, holder)
  if not sums or not holder or sub(sums, SUMS.kind) ~= '-' then return false end
  if #sums ~= SUMS.length or find(sums, '%D', SUMS.bound.start) then return false end
  if not isOurs(holder) or nowText >= sub(sums, SUMS.bound) then return false end
  local form = sub(holder, FULL.form)
  if form == 'h' or form == 'u' then return nowText < sub(holder, FULL.expiry) end
  if form == '=' then return false end
  local ttl = form == 'f' and sub(holder, FRESH.ttl) or sub(holder, RAISED.ttl)
  return sub(holder, FULL.granted) + ttl > now
end

-- The owner comes with the space behind it.
local function isOwner(holder, owner)
  local form = sub(holder, FULL.form)
  local start = form == 'f' and FRESH.words.start or form == '+' and RAISED.words.start
    or FULL.words.start
  return sub(holder, start, start + #owner - 1) == owner
end

-- If another program uses the key, `try` gives an error without elements: then the name is not
-- calm, and the general rules report the key.
local function confirm(key, command)
  local found = try('HMGET', key, 'k', 'x')
  local sums, holder = found[1], found[2]
  if not isCalm(sums, holder) then return nil end
  if not isOwner(holder, sub(command, COMMAND.words)) then return nil end
  local form, expiry = sub(holder, FULL.form), sub(holder, FULL.expiry)
  if form ~= 'u' and form ~= 'h' then return nil end
  if form == 'u' then
    expiry = format('%016.0f', math.max(expiry, now + sub(holder, FULL.ttl)))
    if #expiry > FULL.expiry.size or expiry > sub(sums, SUMS.keptUntil) then return nil end
    local grant = sub(holder, FULL.granted.to.token) .. expiry .. sub(holder, FULL.request)
    write('HSET', key, 'x', 'h' .. grant)
  end
  local waiting = sub(sums, SUMS.waiting) == NONE and ' 0 ' or ' 1 '
  local terms = sub(holder, FULL.token) .. ' ' .. sub(holder, FULL.span)
  return 'N' .. format('%.0f', expiry - now) .. waiting .. terms
end

local function handOff(key, name, command, place)
  local found = try('HMGET', key, 'k', 'x', 'w' .. place)
  local sums, holder, waiter = found[1], found[2], found[3]
  if not waiter or not isCalm(sums, holder) then return nil end
  if not isOwner(holder, sub(command, COMMAND.words)) then return nil end
  if find(waiter, '%D') ~= WAITER.letter.start then return nil end
  if sub(waiter, WAITER.letter) ~= 'x' then return nil end
  local owner, id, offer = string.match(waiter, '^(%S+) (%S+) (%d+)', WAITER.words)
  if not owner or #offer > 16 then return nil end
  local span = sub(waiter, WAITER.span)
  local expiry = format('%016.0f', now + offer)
  if #expiry > FULL.expiry.size or expiry > sub(sums, SUMS.keptUntil) then return nil end
  if sub(sums, SUMS.next) ~= place then return nil end
  -- The client must be alive, and the waiter must have come after the base of its client.
  local client = call('HGET', key, 'c' .. id)
  if not client or find(client, '%D') ~= CLIENT.state.start then return nil end
  if sub(client, CLIENT.state.start) ~= 'a' or place <= sub(client, CLIENT.base) then return nil end
  local token = nextToken()
  if not token then return nil end
  local tokenText = token == now and nowText or format('%016.0f', token)
  local times = ' ' .. tokenText .. ' ' .. span .. ' ' .. nowText .. ' ' .. expiry .. ' '
  if call('PUBLISH', id, 'g' .. owner .. times .. name) == 0 and flags % 2 == 0 then return nil end
  raise(token + span - 1)
  local left, after = sub(client, CLIENT.waiting) - 1, format('%016d', place + 1)
  local waiting, taken = sub(sums, SUMS.waiting), sub(sums, SUMS.taken)
  local fewer = format('%016d', waiting - 1)
  taken = taken == waiting and fewer or format('%016d', taken - 1)
  sums = sub(sums, SUMS.kind.to.keptUntil) .. fewer .. sub(sums, SUMS.last) .. after .. taken
    .. sub(sums, SUMS.lastTombstone)
  holder = 'u' .. nowText .. tokenText .. expiry .. sub(waiter, WAITER.request)
  if left == 0 then
    call('HDEL', key, 'w' .. place, 'o' .. owner, 'c' .. id)
    call('HSET', key, 'k', sums, 'x', holder)
  else
    client = sub(client, CLIENT.gone.to.passed) .. format('%016d', left) .. 'a'
    call('HDEL', key, 'w' .. place, 'o' .. owner)
    call('HSET', key, 'k', sums, 'x', holder, 'c' .. id, client)
  end
  put(name, '=' .. after)
  return 'R' .. offer
end

local function wait(key, name, command)
  if nowText > sub(command, ACQUIRE.notAfter) or not spanOf(command) then return nil end
  local owner, id, offer, touch =
    string.match(command, '^(%S+) (%S+) (%d+) (%d+)', ACQUIRE.words)
  if LONGEST - offer < 0 or LONGEST - 4 * touch < 0 then return nil end
  local found = try('HMGET', key, 'k', 'x', 'o' .. owner, 'c' .. id)
  local sums, holder, client = found[1], found[2], found[4]
  if found[3] or not isCalm(sums, holder) or isOwner(holder, owner .. ' ') then return nil end
  -- The general rules answer an owner with a tombstone.
  local tombstone = register .. 't' .. owner .. ':' .. name
  if nowText < sub(sums, SUMS.lastTombstone) and call('EXISTS', tombstone) == 1 then return nil end
  local bound, last, isNew = sub(sums, SUMS.bound), sub(sums, SUMS.last), not client
  if isNew then
    -- No client waits yet: the general rules start to watch for silent ones.
    if bound == '9007199254740991' then return nil end
    client = NONE .. format('%016.0f', touch) .. last .. NONE .. NONE .. 'a'
  end
  if find(client, '%D') ~= CLIENT.state.start then return nil end
  if sub(client, CLIENT.state.start) ~= 'a' then return nil end
  if sub(client, CLIENT.passed) ~= NONE then return nil end
  if tonumber(touch) > tonumber(sub(client, CLIENT.touch)) then return nil end
  local gone = format('%016.0f', now + 3 * sub(client, CLIENT.touch))
  -- A time before the stored one shows that the clock was set back.
  if gone > sub(sums, SUMS.keptUntil) or gone < sub(client, CLIENT.gone) then return nil end
  if not learn(tonumber(sub(command, ACQUIRE.seen))) or not nextToken() then return nil end
  if gone < bound then bound = gone end
  local waiting, taken = sub(sums, SUMS.waiting), sub(sums, SUMS.taken)
  local place, more = format('%016d', last + 1), format('%016d', waiting + 1)
  local next = taken == NONE and place or sub(sums, SUMS.next)
  taken = taken == waiting and more or format('%016d', taken + 1)
  sums = '-' .. bound .. sub(sums, SUMS.keptUntil) .. more .. place .. next .. taken
    .. sub(sums, SUMS.lastTombstone)
  local mine = format('%016d', sub(client, CLIENT.waiting) + 1)
  client = gone .. sub(client, CLIENT.touch.to.passed) .. mine .. 'a'
  local entry = nowText .. sub(command, ACQUIRE.request)
  if isNew then
    -- First of all writes: if another program uses this key, the general rules report it.
    local added = try('ZADD', register .. 'g:' .. name, gone, id)
    if type(added) == 'table' and added.err then return nil end
  end
  local done =
    try('HSET', key, 'k', sums, 'w' .. place, entry, 'o' .. owner, place, 'c' .. id, client)
  if type(done) == 'table' and done.err then return '!' .. done.err end
  return 'Q' .. format('%d ', waiting) .. holder
end

return function(name, operation, command, pointer)
  local key = register .. ':' .. name
  if operation == 'c' then return confirm(key, command) end
  if operation == 'r' then return handOff(key, name, command, sub(pointer, POINTER.place)) end
  if operation == 'X' or operation == 'E' then return wait(key, name, command) end
end
