-- The rules of rules/ledger.ts, which is their specification, and the records that they keep. A
-- differential test compares every reply and every push.
--
-- Records. Places count from 1; times, tokens and durations are microseconds in 16 digits, so that
-- they compare as text.
--   REQUEST  ttl 1, span 17 (4 digits), offer window 21, heartbeat 37, letter 53 (x: exclusive,
--            weight 1, no limit; e: exclusive; s: shared), owner 54, a space, channel, a space;
--            unless x: weight, a space, limit, a space; meta
--   ENTRY    flag 1, start 2, granted 18, token 34, REQUEST 50: a holder. It expires a ttl after
--            its start; an offer, an offer window after its start
--   flags    H: held, and nothing else there; Q: held, look closer; O: offered, look closer
--   WAITER   since 1, REQUEST 17
--
-- The register R is a hash: under the empty name the last token; for each name in use the ENTRY of
-- its exclusive holder, or F: none, look closer. A name that needs a closer look may have
--   R:name    a hash: k the sums, s the sums of shared holders, m the mark, h<owner> a shared
--             holder, o<owner> the queue position of a waiter, c<client> a client that waits
--   Rq:name   the queue: WAITER by position           Rg:name  clients by the end of their patience
--   Re:name   shared holders by expiry and by token    Ru:name  offers to shared holders
--   Rt<owner>:name   the tombstone of an owner
-- A text in none of these forms is foreign: its name is refused, and the text stays as it is.
local SILENT_PERIODS, MAX_PASSED, MAX_SILENT = 3, 256, 64
local NO_LIMIT, YEAR, LAST_TOKEN = 9007199254740991, 31536000000000, 9007199254739967
local LONGEST, NONE, NEVER = 3153600000000000, '0000000000000000', '9007199254740991'
-- How many steps of work that piled up one call does, besides one for each command: see
-- rules/upkeep.ts.
local SLICE = 64
local now, size, spare = tonumber(nowText), math.floor(count / 2), SLICE
known = known or call('HMGET', R, '', unpack(ARGV, 1, size))
-- A last token that is no number is ignored: the clock and the clients' tokens give the next one.
local last, texts = known[1] and find(known[1], '^%d+$') and tonumber(known[1]) or 0, {}
local isRaised, follow = false, now
for turn = 1, size do texts[ARGV[turn]] = known[turn + 1] end

local function tokenText(token) return token == now and nowText or digits(token) end

local function raise(token)
  if token > last then last, isRaised = token, true end
end

-- Nil if all tokens that keep their digits are used up.
local function nextToken()
  local token = last < now and now or last + 1
  return token <= LAST_TOKEN and token or nil
end

-- Counts on from a token that a client has seen; false if it is too far ahead.
local function learn(seen)
  if seen <= math.min(now + YEAR, LAST_TOKEN) then raise(seen) end
  return seen <= last
end

-- Ends the command: the data at this place is not ours.
local function refuse(where) error({ where = where }) end

-- A write that must not fail at maxmemory: Redis lets a script write after a delete, even after one
-- that found nothing.
local function write(...)
  local done = try(...)
  if type(done) ~= 'table' or not done.err then return done end
  call('HDEL', R, '?')
  return call(...)
end

local function isOwnFormat(text)
  if text == 'F' then return true end
  return match(text, '^[HQO]%d+()[xes]%S+ ') == 102
end

-- What a REQUEST asks for; nil if it cannot be read.
local function parse(request)
  local start, owner, client, stop = match(request, '^%d+()[xes](%S+) (%S+) ()')
  if start ~= 53 then return nil end
  local letter, weight, limit = byte(request, 53), 1, NO_LIMIT
  if letter ~= 120 then
    weight, limit = match(request, '^(%d+) (%d+) ', stop)
    weight, limit = tonumber(weight), tonumber(limit)
    if not weight or weight > NO_LIMIT or limit > NO_LIMIT then return nil end
  end
  return {
    request = request, owner = owner, client = client, weight = weight, limit = limit,
    isShared = letter == 115,
  }
end

local numbers = {}
-- The number that a text says; 0 for a damaged text. The holders of a batch have many in common.
local function numberOf(text)
  local number = numbers[text]
  if not number then
    number = tonumber(text) or 0
    numbers[text] = number
  end
  return number
end

-- A holder: its text, when it expires, and whether its owner has confirmed it.
local function holderFrom(text)
  local isOffer = byte(text) == 79
  local length = isOffer and sub(text, 70, 85) or sub(text, 50, 65)
  local expiry = numberOf(sub(text, 2, 17)) + numberOf(length)
  return { text = text, expiry = expiry, confirmed = not isOffer }
end

local function complete(holder)
  if holder.owner then return holder end
  local asked = parse(sub(holder.text, 50)) or refuse('a holder')
  for field, value in pairs(asked) do holder[field] = value end
  return holder
end

local function tokenOf(holder) return sub(holder.text, 34, 49) end
local function spanOf(holder) return sub(holder.text, 66, 69) end
local function companion(state, letter) return R .. letter .. ':' .. state.name end

local function get(state, field)
  local value = state.fields[field]
  if value == nil then
    value = state.hasHash and call('HGET', state.key, field)
    state.fields[field] = value
  end
  return value
end

local function set(state, field, value) state.fields[field], state.dirty[field] = value, true end

-- The hash must be kept until this time.
local function need(state, time)
  if time > state.needed then state.needed = time end
end

-- A client that waits: state (a: alive, s: unresponsive), the end of its patience, the longest
-- heartbeat of its waiters, the last position that was given before it came, how many waiters it
-- has.
local function clientOf(state, id)
  local client = state.clients[id]
  if client == nil then
    local text = state.waiting > 0 and get(state, 'c' .. id)
    local letter, times, base, waiting = match(text or '', '^([as])(%d+) (%d+) (%d+)$')
    client = times and #times == 32 and {
      isUnresponsive = letter == 's', gone = sub(times, 1, 16), heartbeat = sub(times, 17),
      base = tonumber(base), waiting = tonumber(waiting),
    }
    state.clients[id] = client
  end
  return client
end

local function putClient(state, id, client)
  local letter = client.isUnresponsive and 's' or 'a'
  local times, base = client.gone .. client.heartbeat .. ' ', client.base .. ' '
  state.clients[id] = client
  set(state, 'c' .. id, letter .. times .. base .. client.waiting)
end

-- The search for the head goes back to the waiters of this client, which it may have passed over.
local function lookBack(state, client)
  if client.isUnresponsive and state.next > client.base then state.next = client.base + 1 end
end

local function dropClient(state, id)
  state.clients[id] = false
  set(state, 'c' .. id, false)
end

local function setUnresponsive(state, id)
  local client = clientOf(state, id)
  if not client then return end
  client.isUnresponsive = true
  putClient(state, id, client)
end

-- The waiter in a member of the queue; nil if it does not count: it is damaged, or its client was
-- dropped since.
local function waiterFrom(state, member, position)
  local entry = parse(sub(member, 17))
  if not entry or position % 1 ~= 0 or position > state.last then return nil end
  local client = clientOf(state, entry.client)
  entry.text, entry.position = member, position
  return client and position > client.base and entry or nil
end

local function waiterOf(state, owner)
  local position = state.waiting > 0 and tonumber(get(state, 'o' .. owner) or nil)
  if not position then return nil end
  local key = companion(state, 'q')
  local member = call('ZRANGE', key, position, position, 'BYSCORE', 'LIMIT', 0, 1)[1]
  local entry = member and waiterFrom(state, member, position)
  return entry and entry.owner == owner and entry or nil
end

-- Removes the records of a waiter that has left the queue.
local function dropWaiter(state, entry)
  local id = entry.client
  local client = clientOf(state, id)
  set(state, 'o' .. entry.owner, false)
  state.waiting = math.max(0, state.waiting - 1)
  if not client then return end
  client.waiting = client.waiting - 1
  if client.waiting <= 0 then return dropClient(state, id) end
  putClient(state, id, client)
end

-- Forgets all waiters if the key of the queue was lost: their processes ask again.
local function checkQueue(state)
  if call('EXISTS', companion(state, 'q')) == 1 then return end
  local cursor = '0'
  repeat
    local page = call('HSCAN', state.key, cursor, 'COUNT', 1000)
    cursor = page[1]
    for at = 1, #page[2], 2 do
      if find(page[2][at], '^[oc]') then set(state, page[2][at], false) end
    end
  until cursor == '0'
  for field in pairs(state.dirty) do
    if find(field, '^[oc]') then set(state, field, false) end
  end
  state.waiting, state.clients, state.bound = 0, {}, NEVER
end

-- The first waiter whose client is responsive, and whether the search for it must go on. Before the
-- position `next` there are only waiters of unresponsive clients. Until the head is found, no
-- waiter is served, and no new owner is granted the lock before the queue.
local function head(state)
  local key, many, passed = companion(state, 'q'), 1, 0
  while state.waiting > 0 do
    local found = state.next == 0 and call('ZRANGE', key, 0, many - 1, 'WITHSCORES')
      or call('ZRANGE', key, state.next, '+inf', 'BYSCORE', 'LIMIT', 0, many, 'WITHSCORES')
    if not found[1] then return checkQueue(state) end
    for at = 1, #found, 2 do
      local member, position = found[at], tonumber(found[at + 1])
      local entry = waiterFrom(state, member, position)
      if not entry then
        call('ZREM', key, member)
        local field = 'o' .. (match(member, '^(%S+) ', 70) or '')
        -- The owner may have come again since.
        if get(state, field) == found[at + 1] then set(state, field, false) end
      elseif not clientOf(state, entry.client).isUnresponsive then
        return entry
      else
        state.next = position + 1
      end
      passed = passed + 1
      if passed == MAX_PASSED then
        state.isBehind = true
        return nil, true
      end
    end
    many = math.min(2 * many, 64)
  end
end

-- Removes keys that an earlier life of a name left, as after the register was lost. If one of them
-- belongs to another program, the command is refused, and none of them is removed.
local function clear(state)
  local key, q, g = state.key, companion(state, 'q'), companion(state, 'g')
  local e, u = companion(state, 'e'), companion(state, 'u')
  if call('EXISTS', key, q, g, e, u) > 0 then
    local sums = call('HGET', key, 'k')
    if not find(sums or '', '^%d+ %d') and call('EXISTS', key) == 1 then refuse(key) end
    for _, other in ipairs({ q, g, e, u }) do
      local member = call('ZRANGE', other, -1, -1)[1]
      if member and not find(member, '{hf:', 1, true) and not find(member, '^%d%d%d%d%d%d%d%d') then
        refuse(other)
      end
    end
    call('UNLINK', key, q, g, e, u)
  end
  state.hasHash, state.isFresh = true, true
end

local sharedPart
local function shared()
  sharedPart = sharedPart or (function()
--- @include "shared"
  end)()
  return sharedPart
end

local function fits(state, asked)
  if state.holder then return false end
  if state.count == 0 then return asked.weight <= asked.limit end
  return asked.isShared and shared().fits(state, asked)
end

local function grant(state, asked, token, text, isConfirmed)
  raise(token + sub(asked.request, 17, 20) - 1)
  local flag = isConfirmed and 'H' or 'O'
  local holder = holderFrom(flag .. nowText .. nowText .. text .. asked.request)
  if asked.isShared then return shared().put(state, complete(holder)) end
  state.holder = holder
end

-- Lets a holder expire this long after now, but never sooner than before. Confirms it, too.
local function extend(state, holder, ttl)
  local text, ends, wasOffer = holder.text, now + ttl, not holder.confirmed
  if ends >= holder.expiry then
    holder.text, holder.expiry = 'H' .. nowText .. sub(text, 18, 49) .. ttl .. sub(text, 66), ends
  elseif wasOffer then
    holder.text = 'H' .. sub(text, 2, 49) .. sub(text, 70, 85) .. sub(text, 66)
  end
  holder.confirmed = true
  if holder ~= state.holder then shared().update(state, holder, wasOffer) end
end

local function dropHolder(state, holder)
  if holder == state.holder then
    state.holder = nil
  else
    shared().drop(state, holder)
  end
end

local function nextToExpire(state)
  return state.holder or state.count > 0 and shared().next(state) or nil
end

-- The holder that expires first, as the end of a reply.
local function blockage(state)
  local next = nextToExpire(state)
  return next and ' ' .. next.text or ''
end

local function lapse(state, holder)
  dropHolder(state, holder)
  if holder.confirmed then return end
  -- The client did not confirm the grant: it is dead or hung, and so are its other waiters. If work
  -- has piled up, it may have spoken since.
  local id = complete(holder).client
  local client = clientOf(state, id)
  if client and client.gone - SILENT_PERIODS * client.heartbeat < holder.expiry then
    setUnresponsive(state, id)
  end
end

-- The holder of an owner. One that has expired is dropped, even before others that expired earlier.
local function holderOf(state, owner)
  local holder = state.holder
  if holder then
    if sub(holder.text, 103, 103 + #owner) ~= owner .. ' ' then return nil end
  else
    holder = state.count > 0 and shared().of(state, owner)
    if not holder then return nil end
  end
  if holder.expiry > now then return holder end
  lapse(state, holder)
end

-- Whether a loop that has done so many steps may do another one.
local function allows(state, done)
  if done == 0 then return true end
  if spare == 0 then
    state.isBehind = true
    return false
  end
  spare = spare - 1
  return true
end

-- Sends a message that its client believes; false if no client listens. In a Cluster PUBLISH counts
-- only the listeners of its own node, so there the answer is always true. A listener at a replica
-- is not counted, and its grant goes to the next waiter with the same token: it must not hear it.
local function push(client, message)
  redis.set_repl(redis.REPL_NONE)
  local heard = try('PUBLISH', client, message)
  redis.set_repl(redis.REPL_ALL)
  return heard == 0 and flags % 2 == 1 and 1 or heard
end

local function pushNews(state, client, kind, owner, token, detail)
  -- A server that refuses writes still publishes. The delete, of nothing, fails there: no client
  -- hears of what is not written.
  call('HDEL', R, '?')
  local number = format('%.0f', token)
  local heard = push(client, kind .. cjson.encode({ state.name, owner, number, detail }))
  if type(heard) == 'table' then error(heard) end
end

-- When a key that is needed until this time may expire: 100 ms later. The clock has moved on since
-- the call read it, and Redis deletes a key at once if its time to expire has passed.
local function endMs(time) return math.ceil(time / 1000) + 100 end

-- Offers the lock to a waiter. One whose client does not listen is passed over, unless that client
-- sent this command: it learns of its grants by the reply to a heartbeat.
local function handOff(state, entry, token, sender)
  local key, request, text = companion(state, 'q'), entry.request, tokenText(token)
  -- A server that refuses writes fails here: no client hears of a grant that is not written.
  call('ZREM', key, entry.text)
  local times = text .. ' ' .. sub(request, 17, 20) .. ' ' .. nowText .. ' ' .. sub(request, 21, 36)
  local heard = push(entry.client, 'g' .. entry.owner .. ' ' .. times .. ' ' .. state.name)
  if heard == 0 and entry.client ~= sender or type(heard) == 'table' then
    write('ZADD', key, entry.position, entry.text)
    call('PEXPIREAT', key, endMs(state.keptUntil))
    if type(heard) == 'table' then error(heard) end
    return setUnresponsive(state, entry.client)
  end
  dropWaiter(state, entry)
  grant(state, entry, token, text, false)
end

-- Serves the queue from its head for as long as the head fits: no waiter overtakes another. With a
-- mark, every waiter is told that the work is done.
local function serve(state, sender)
  local mark, done = state.mark, 0
  while state.waiting > 0 and not state.holder do
    local first, token = head(state), nextToken()
    if not first or not (mark or token and fits(state, first)) then return end
    if not allows(state, done) then return end
    if mark then
      call('ZREM', companion(state, 'q'), first.text)
      dropWaiter(state, first)
      pushNews(state, first.client, 'm', first.owner, tonumber(mark.token), mark.meta)
    else
      handOff(state, first, token, sender)
    end
    done = done + 1
  end
end

-- Until this time no command of the owner acts: lastTombstone says whether there may be any.
local function tombstoneOf(state, owner)
  if state.tombstone <= nowText then return nil end
  local text = try('GET', companion(state, 't' .. owner))
  if not text then return nil end
  if type(text) == 'table' or find(text, '%D') ~= 17 then refuse('the tombstone of an owner') end
  local keptUntil = sub(text, 1, 16)
  if keptUntil <= nowText then return nil end
  return { keptUntil = keptUntil, reason = sub(text, 17, 17) == 'r' and sub(text, 18) }
end

-- The reason of a revocation stays.
local function putTombstone(state, owner, keptUntil, reason)
  local old = tombstoneOf(state, owner)
  if old then
    keptUntil, reason = math.max(keptUntil, old.keptUntil), reason or old.reason
  end
  local text = digits(keptUntil)
  local kind = reason and 'r' .. reason or '-'
  write('SET', companion(state, 't' .. owner), text .. kind, 'PXAT', endMs(keptUntil))
  if text > state.tombstone then state.tombstone = text end
  need(state, text)
end

local function dropMark(state)
  state.mark = nil
  set(state, 'm', false)
end

-- Drops the clients that were silent for too long. `head` drops their waiters when it meets them.
local function dropSilent(state)
  local key, least = companion(state, 'g'), NEVER
  local silent = call('ZRANGE', key, '-inf', nowText, 'BYSCORE', 'LIMIT', 0, MAX_SILENT)
  for _, id in ipairs(silent) do
    local client = clientOf(state, id)
    if client and client.gone > nowText then
      write('ZADD', key, client.gone, id)
    else
      call('ZREM', key, id)
      if client then
        lookBack(state, client)
        state.waiting = math.max(0, state.waiting - client.waiting)
        dropClient(state, id)
      end
    end
  end
  local next = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or nil)
  state.bound = next and next >= 0 and next < NO_LIMIT and digits(math.floor(next)) or least
end

-- The time when a client has been silent for too long moves with each of its commands. The sorted
-- set keeps an earlier time for it, and `bound` is the least of these.
local function watch(state, id, gone)
  if state.bound == NEVER then state.isWatched = true end
  if gone < state.bound then state.bound = gone end
  write('ZADD', companion(state, 'g'), gone, id)
end

local function setAlive(state, id)
  local client = state.waiting > 0 and clientOf(state, id)
  if not client then return end
  lookBack(state, client)
  local gone = digits(now + SILENT_PERIODS * client.heartbeat)
  -- The time is earlier than before only if the clock was set back.
  if gone < client.gone then watch(state, id, gone) end
  client.gone, client.isUnresponsive = gone, false
  putClient(state, id, client)
  need(state, gone)
end

local function enqueue(state, asked)
  if state.waiting > 0 then checkQueue(state) end
  local id, request = asked.client, asked.request
  local client, position = clientOf(state, id), state.last + 1
  local heartbeat = sub(request, 37, 52)
  if not state.hasHash then clear(state) end
  if state.waiting == 0 then state.next, state.isQueueNew = 0, true end
  write('ZADD', companion(state, 'q'), position, nowText .. request)
  if not client then
    local gone = digits(now + SILENT_PERIODS * heartbeat)
    client = { gone = gone, heartbeat = heartbeat, base = state.last, waiting = 0 }
    watch(state, id, gone)
  else
    if heartbeat > client.heartbeat then client.heartbeat = heartbeat end
    local gone = digits(now + SILENT_PERIODS * heartbeat)
    if gone > client.gone then client.gone = gone end
  end
  need(state, client.gone)
  client.waiting = client.waiting + 1
  state.last, state.waiting = position, state.waiting + 1
  putClient(state, id, client)
  set(state, 'o' .. asked.owner, position)
  return state.waiting - 1
end

local function load(name, owner, client)
  local text = texts[name]
  if text and not isOwnFormat(text) then
    local isOther = find(text, '^[fhu+=]%d')
    local by = isOther and ', which another version of Holdfast wrote' or ''
    refuse('field ' .. name .. ' of ' .. R .. by)
  end
  local state = {
    name = name, key = R .. ':' .. name, fields = {}, dirty = {}, clients = {}, count = 0,
    waiting = 0, last = 0, next = 0, bound = NEVER, keptUntil = NONE, tombstone = NONE,
    needed = NONE,
  }
  if not text then return state end
  if text ~= 'F' then state.holder = holderFrom(text) end
  if byte(text) == 72 then return state end
  local mine, id = 'o' .. owner, 'c' .. client
  local found, fields = call('HMGET', state.key, 'k', 's', 'm', mine, id), state.fields
  local sums, mark = found[1], found[3]
  if not sums then return state end
  local times, waiting, last, next = match(sums, '^(%d+) (%d+) (%d+) (%d+)$')
  if not times or #times ~= 48 or #last > 14 then
    refuse('field k of ' .. state.key)
  end
  state.hasHash, state.sums = true, sums
  state.bound, state.keptUntil = sub(times, 1, 16), sub(times, 17, 32)
  state.tombstone = sub(times, 33)
  state.waiting, state.last, state.next = tonumber(waiting), tonumber(last), tonumber(next)
  fields.s, fields[mine], fields[id] = found[2], found[4], found[5]
  if fields.s then
    if not find(fields.s, '^%d+ %d+ %d+[ %d:]*$') then refuse('field s of ' .. state.key) end
    state.count = tonumber(match(fields.s, '^%d+'))
  end
  if mark then
    if find(sub(mark, 1, 32), '%D') or #mark < 32 then refuse('field m of ' .. state.key) end
    local keptUntil = tonumber(sub(mark, 1, 16))
    state.mark = { keptUntil = keptUntil, token = sub(mark, 17, 32), meta = sub(mark, 33) }
  end
  return state
end

-- The error of the server if the slot of the register is on its way to another node, else false.
-- Keys of such a slot may be on either node, and a part that used only the keys of one node would
-- work with half of a lock. Redis answers a call for two keys that exist on no node with an error,
-- on both nodes.
local motion
local function moving()
  if motion == nil then
    local answered = flags % 2 == 1 and try('EXISTS', R .. '?', R .. '!')
    motion = type(answered) == 'table' and answered.err
  end
  return motion
end

-- The state of a name, for a command of this owner or this client: what has expired is dropped, and
-- the queue is served.
local function open(name, owner, client, sender)
  if moving() then error({ reply = '!TRYAGAIN ' .. moving() }) end
  local state = load(name, owner, client)
  local next, done = nextToExpire(state), 0
  while next and next.expiry <= now and allows(state, done) do
    lapse(state, next)
    next, done = nextToExpire(state), done + 1
  end
  if state.mark and state.mark.keptUntil <= now then dropMark(state) end
  if state.waiting > 0 and state.bound <= nowText then dropSilent(state) end
  if client ~= '' then setAlive(state, client) end
  serve(state, sender)
  return state
end

-- Writes the state, and gives the reply. A name that needs no closer look any more loses its keys.
local function save(state, reply)
  local holder, key, name = state.holder, state.key, state.name
  local isMore = state.waiting > 0 or state.count > 0 or state.mark or state.tombstone > nowText
  local text = holder and holder.text or nil
  if not isMore and not (holder and state.hasHash) then
    if state.hasHash then
      local e, u = companion(state, 'e'), companion(state, 'u')
      call('UNLINK', key, companion(state, 'q'), companion(state, 'g'), e, u)
    end
    texts[name] = text or false
    return reply
  end
  if not state.hasHash then clear(state) end
  local keptUntil, needed = state.keptUntil, state.needed
  if needed > keptUntil then
    -- Half as long again as needed: so not every command has to write a new expiry.
    keptUntil = digits(math.floor(needed + (needed - now) / 2))
  end
  local times = state.bound .. keptUntil .. state.tombstone .. ' '
  local sums = times .. state.waiting .. ' ' .. state.last .. ' ' .. state.next
  if sums ~= state.sums or next(state.dirty) then set(state, 'k', sums) end
  local writes, drops = {}, {}
  for field in pairs(state.dirty) do
    local value = state.fields[field]
    if value then
      writes[#writes + 1], writes[#writes + 2] = field, value
    elseif not state.isFresh then
      drops[#drops + 1] = field
    end
  end
  for first = 1, #drops, 1000 do
    call('HDEL', key, unpack(drops, first, math.min(first + 999, #drops)))
  end
  for first = 1, #writes, 1000 do
    write('HSET', key, unpack(writes, first, math.min(first + 999, #writes)))
  end
  local isMoved, keys = keptUntil ~= state.keptUntil, {}
  if isMoved then keys = { key } end
  if isMoved and state.count > 0 or state.isShared then
    keys[#keys + 1], keys[#keys + 2] = companion(state, 'e'), companion(state, 'u')
  end
  if isMoved and state.waiting > 0 or state.isWatched or state.isQueueNew then
    keys[#keys + 1], keys[#keys + 2] = companion(state, 'q'), companion(state, 'g')
  end
  for _, each in ipairs(keys) do call('PEXPIREAT', each, endMs(keptUntil)) end
  if text and holder.confirmed and byte(text) == 72 then text = 'Q' .. sub(text, 2) end
  texts[name] = text or 'F'
  return reply
end

-- The reason why a command on a name failed: foreign data, or the error of the server.
local function failure(name, why)
  if type(why) == 'table' and why.reply then return why.reply end
  if type(why) == 'table' and why.where then
    return '!FOREIGN ' .. why.where .. ' (lock ' .. name .. ')'
  end
  local said = type(why) == 'table' and why.err or why
  if find(said, 'WRONGTYPE') then
    for letter, kind in pairs({ [''] = 'hash', q = 'zset', g = 'zset', e = 'zset', u = 'zset' }) do
      local key = R .. letter .. ':' .. name
      local found = try('TYPE', key)
      -- Without the right to TYPE the reason names the hash.
      if found.err then return '!FOREIGN ' .. R .. ':' .. name end
      if found.ok ~= kind and found.ok ~= 'none' then
        return '!FOREIGN ' .. key .. ' (a ' .. found.ok .. ')'
      end
    end
  end
  -- The word `user_script` tells the client that the script may have written before it failed.
  return '!' .. (match(said, '%u%u%u+ .*') or said) .. ' (user_script)'
end

local function nothing() return nil end

-- Runs the functions for each command, the second one if the first one gives no reply. Writes the
-- register, and gives the result of the script.
local function answer(quick, decide)
  local replies, isTerse = { nowText }, size > 1
  for turn = 1, size do
    local name = ARGV[turn]
    local text = texts[name]
    local done, reply = true, quick(name, ARGV[size + turn], text)
    if not reply then
      done, reply = pcall(decide, name, ARGV[size + turn])
      if not done then reply, texts[name] = failure(name, reply), text end
    end
    replies[turn + 1], isTerse = reply, isTerse and #reply == 1
  end
  if isTerse then replies = { nowText, table.concat(replies, '', 2) } end
  local added, removed = {}, {}
  for turn = 1, size do
    local name = ARGV[turn]
    local text = texts[name]
    if text and text ~= known[turn + 1] then
      added[#added + 1], added[#added + 2] = name, text
    elseif not text and known[turn + 1] then
      removed[#removed + 1] = name
    end
  end
  -- WAIT proves that replicas have an answer only if the same call has written (replication.ts).
  if isRaised or flags >= 4 then
    added[#added + 1], added[#added + 2] = '', isRaised and digits(last) or known[1] or '0'
  end
  if removed[1] then call('HDEL', R, unpack(removed)) end
  if added[1] then write('HSET', R, unpack(added)) end
  if micros % 32 == 0 and not moving() then
--- @include "sweep"
  end
  replies[#replies + 1] = run
  return replies
end
