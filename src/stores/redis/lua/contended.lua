-- The short path for a mutex with waiters: its holder confirms, or releases and the first waiter
-- gets the lock, or one more owner starts to wait. It decides a command only if nothing has expired
-- and no client is suspect. It works on the records of state.lua and queue.lua as texts. A command
-- that it does not decide goes on to the general rules; nothing has been written then.
--
-- A command alone is decided before the register is set up, because a handoff waits for it: this
-- part makes two functions, and register.lua more than ten.
--
-- in:       call try sub find format register known loneText nowText LONGEST MOST_TURNS flags
-- out:      NO_LIMIT YEAR LAST_TOKEN now push decide
-- commands: EXISTS HDEL HGET HMGET HSET PUBLISH ZADD
-- returns:  the time and the reply, for one command alone on a mutex with waiters
local NO_LIMIT = 9007199254740991
-- As in rules/bounds.ts and rules/token.ts.
local YEAR, LAST_TOKEN = 31536000000000, NO_LIMIT - 1024
local now = tonumber(nowText)

-- Sends a message that its client believes. False if no client listens to the channel. In a Cluster
-- PUBLISH counts only the listeners of its own node, so there the answer is always true.
local function push(client, message)
  -- A server that refuses writes still publishes. The delete, of nothing, fails there: no client
  -- hears of a grant that is not written.
  call('HDEL', register, '?')
  -- A listener at a replica is not counted, and its grant goes to the next waiter with the same
  -- token: so it must not hear of it.
  redis.set_repl(redis.REPL_NONE)
  local listeners = call('PUBLISH', client, message)
  redis.set_repl(redis.REPL_ALL)
  return listeners > 0 or flags % 2 == 1
end

-- Gives the reply, or nil. A new pointer and a new last token are for the caller to write.
local function decide(name, operation, command, pointer, last)
  local NONE, key, place = '0000000000000000', register .. ':' .. name, sub(pointer, POINTER.place)
  local found, owner, id, offer, touch
  -- If another program uses the key, `try` gives an error without elements, which is no sums. Then
  -- the general rules report the key.
  if operation == 'c' then
    found = try('HMGET', key, 'k', 'x')
  elseif operation == 'r' then
    found = try('HMGET', key, 'k', 'x', 'w' .. place)
  elseif operation == 'X' then
    local span = sub(command, ACQUIRE.span)
    if find(command, '%D', ACQUIRE.notAfter.start) ~= ACQUIRE.letter.start then return nil end
    if nowText > sub(command, ACQUIRE.notAfter) or sub(command, ACQUIRE.ttl) > LONGEST then
      return nil
    end
    if span == '0000' or span > MOST_TURNS then return nil end
    owner, id, offer, touch = string.match(command, '^(%S+) (%S+) (%d+) (%d+)', ACQUIRE.words)
    if LONGEST - offer < 0 or LONGEST - 4 * touch < 0 then return nil end
    found = try('HMGET', key, 'k', 'x', 'o' .. owner, 'c' .. id)
  else
    return nil
  end

  -- One exclusive holder has the name, neither the holder nor a client has expired, and there is
  -- nothing else but waiters and tombstones.
  local sums, holder = found[1], found[2]
  if not sums or not holder or sub(sums, SUMS.kind) ~= '-' then return nil end
  if #sums ~= SUMS.length or find(sums, '%D', SUMS.bound.start) then return nil end
  if nowText >= sub(sums, SUMS.bound) then return nil end
  local form = sub(holder, FULL.form)
  local letter = (form == 'h' or form == 'u') and FULL.letter.start
    or form == 'f' and FRESH.letter.start or form == '+' and RAISED.letter.start
  if not letter or find(holder, '%D', FULL.granted.start) ~= letter then return nil end
  if not find(holder, '^[xes]%S+ ', letter) then return nil end
  if letter == FULL.letter.start then
    if nowText >= sub(holder, FULL.expiry) then return nil end
  else
    local ttl = form == 'f' and sub(holder, FRESH.ttl) or sub(holder, RAISED.ttl)
    if sub(holder, FULL.granted) + ttl <= now then return nil end
  end
  -- The owner stands behind the letter, with a space behind it.
  local asker = owner and owner .. ' ' or sub(command, COMMAND.words)
  local isHolder = sub(holder, letter + 1, letter + #asker) == asker

  if operation == 'c' then
    local expiry = sub(holder, FULL.expiry)
    if not isHolder or letter ~= FULL.letter.start then return nil end
    if form == 'u' then
      expiry = format('%016.0f', math.max(expiry, now + sub(holder, FULL.ttl)))
      if #expiry > FULL.expiry.size or expiry > sub(sums, SUMS.keptUntil) then return nil end
      local grant = 'h' .. sub(holder, FULL.granted.to.token) .. expiry .. sub(holder, FULL.request)
      local done = try('HSET', key, 'x', grant)
      -- It must not fail at maxmemory: see `write` in register.lua.
      if type(done) == 'table' and done.err then
        call('HDEL', register, '?')
        call('HSET', key, 'x', grant)
      end
    end
    local waiting = sub(sums, SUMS.waiting) == NONE and ' 0 ' or ' 1 '
    local terms = sub(holder, FULL.token) .. ' ' .. sub(holder, FULL.span)
    return 'N' .. format('%.0f', expiry - now) .. waiting .. terms
  end

  local waiting, taken = sub(sums, SUMS.waiting), sub(sums, SUMS.taken)
  if operation == 'r' then
    local waiter = found[3]
    if not waiter or not isHolder or sub(sums, SUMS.next) ~= place then return nil end
    if find(waiter, '%D') ~= WAITER.letter.start or sub(waiter, WAITER.letter) ~= 'x' then
      return nil
    end
    owner, id, offer = string.match(waiter, '^(%S+) (%S+) (%d+)', WAITER.words)
    if not owner or #offer > 16 then return nil end
    local expiry = format('%016.0f', now + offer)
    if #expiry > FULL.expiry.size or expiry > sub(sums, SUMS.keptUntil) then return nil end
    -- The client must be alive, and the waiter must have come after the base of its client.
    local client = call('HGET', key, 'c' .. id)
    if not client or find(client, '%D') ~= CLIENT.state.start then return nil end
    if sub(client, CLIENT.state.start) ~= 'a' or place <= sub(client, CLIENT.base) then
      return nil
    end
    local token, span = math.max(now, last + 1), sub(waiter, WAITER.span)
    if token > LAST_TOKEN then return nil end
    local tokenText = token == now and nowText or format('%016.0f', token)
    local times = ' ' .. tokenText .. ' ' .. span .. ' ' .. nowText .. ' ' .. expiry .. ' '
    if not push(id, 'g' .. owner .. times .. name) then return nil end
    local left, after = sub(client, CLIENT.waiting) - 1, format('%016d', place + 1)
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
    return 'R' .. offer, '=' .. after, token + span - 1
  end

  if found[3] or isHolder then return nil end
  -- The general rules answer an owner with a tombstone.
  local tombstone = register .. 't' .. owner .. ':' .. name
  if nowText < sub(sums, SUMS.lastTombstone) and call('EXISTS', tombstone) == 1 then return nil end
  local client, bound, lastPlace = found[4], sub(sums, SUMS.bound), sub(sums, SUMS.last)
  local isNew = not client
  if isNew then
    -- No client waits yet: the general rules start to watch for silent ones.
    if bound == '9007199254740991' then return nil end
    client = NONE .. format('%016.0f', touch) .. lastPlace .. NONE .. NONE .. 'a'
  end
  if find(client, '%D') ~= CLIENT.state.start then return nil end
  if sub(client, CLIENT.state.start) ~= 'a' then return nil end
  if sub(client, CLIENT.passed) ~= NONE then return nil end
  if tonumber(touch) > tonumber(sub(client, CLIENT.touch)) then return nil end
  local gone = format('%016.0f', now + 3 * sub(client, CLIENT.touch))
  -- A time before the stored one shows that the clock was set back.
  if gone > sub(sums, SUMS.keptUntil) or gone < sub(client, CLIENT.gone) then return nil end
  -- A seen token that is too far ahead is refused by the general rules.
  local seen = tonumber(sub(command, ACQUIRE.seen))
  if seen > last and seen > math.min(now + YEAR, LAST_TOKEN) then return nil end
  if math.max(now, last + 1, seen + 1) > LAST_TOKEN then return nil end
  if gone < bound then bound = gone end
  local spot, more = format('%016d', lastPlace + 1), format('%016d', waiting + 1)
  local next = taken == NONE and spot or sub(sums, SUMS.next)
  taken = taken == waiting and more or format('%016d', taken + 1)
  sums = '-' .. bound .. sub(sums, SUMS.keptUntil) .. more .. spot .. next .. taken
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
    try('HSET', key, 'k', sums, 'w' .. spot, entry, 'o' .. owner, spot, 'c' .. id, client)
  if type(done) == 'table' and done.err then return '!' .. done.err end
  return 'Q' .. format('%d ', waiting) .. holder, nil, seen > last and seen or nil
end

-- Calls with flags come here by register.lua.
if #ARGV == 2 then
  local name, command, last = ARGV[1], ARGV[2], known and known[1]
  local operation = sub(command, COMMAND.operation)
  if operation == 'c' then loneText = call('HGET', register, name) end
  if loneText and sub(loneText, POINTER.form) == '=' then
    if operation == 'r' then last = call('HGET', register, '') end
    last = last and find(last, '^%d+$') and tonumber(last) or 0
    local reply, pointer, raised = decide(name, operation, command, loneText, last)
    if pointer then
      call('HSET', register, '', format('%016.0f', raised), name, pointer)
    elseif raised then
      call('HSET', register, '', format('%016.0f', raised))
    end
    if reply then return { nowText, reply } end
  end
end
