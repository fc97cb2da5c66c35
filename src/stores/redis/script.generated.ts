// Written by `npm run lua` from lua/*.lua: change those, and run it.
const clock = `local call, try, sub, byte = redis.call, redis.pcall, string.sub, string.byte
local find, match, format = string.find, string.match, string.format
local R, count, clock = KEYS[1], #ARGV, call('TIME')
local seconds, micros, known = clock[1], clock[2], nil
local nowText = seconds .. micros
if #nowText ~= 16 then
nowText = sub('0000000000', #seconds + 1) .. seconds .. sub('000000', #micros + 1) .. micros
end
local flags = count % 2 == 1 and tonumber(ARGV[count]) or 0
local run = flags % 4 > 1 and match(call('INFO', 'server'), 'run_id:(%x+)') or nil`;
const digits = `local base
local function digits(number)
base = base or seconds * 1e6
local low = number - base
if low >= 0 and low < 1e6 and #seconds == 10 then return seconds .. format('%06d', low) end
return format('%08d%08d', (number - number % 1e8) / 1e8, number % 1e8)
end`;
const sweep = `local many = math.max(4, math.floor(count / 2))
for _ = 1, 16 do
local sample, dead = call('HRANDFIELD', R, many, 'WITHVALUES'), {}
for at = 1, #sample, 2 do
local name, text, isDead = sample[at], sample[at + 1], sample[at + 1] == 'F'
if match(text, '^[HQO]%d+()[xes]%S+ ') == 102 then
local length = byte(text) == 79 and sub(text, 70, 85) or sub(text, 50, 65)
isDead = sub(text, 2, 17) + length <= tonumber(nowText)
end
if isDead and byte(text) ~= 72 then isDead = call('EXISTS', R .. ':' .. name) == 0 end
if isDead then dead[#dead + 1] = name end
end
if dead[1] then call('HDEL', R, unpack(dead)) end
if #dead * 4 < many then break end
many = math.max(16, many)
end`;
const shared = `local part, BELOW_ZERO = {}, 9007199254740992
local function scoreOf(token) return format('%.0f', token - BELOW_ZERO) end
local function offerOf(holder) return holder.client .. ' ' .. tokenOf(holder) .. holder.owner end
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
local holder = text ~= 'F' and isOurs(text) and complete(holderFrom(text))
if not holder or holder.owner ~= owner then refuse('a holder in ' .. state.key) end
return holder
end
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
return part`;
const rules = `local SILENT_PERIODS, MAX_PASSED, MAX_SILENT = 3, 256, 64
local NO_LIMIT, YEAR, LAST_TOKEN = 9007199254740991, 31536000000000, 9007199254739967
local LONGEST, NONE, NEVER = 3153600000000000, '0000000000000000', '9007199254740991'
local SLICE = 64
local now, size, spare = tonumber(nowText), math.floor(count / 2), SLICE
known = known or call('HMGET', R, '', unpack(ARGV, 1, size))
local last, texts = known[1] and find(known[1], '^%d+$') and tonumber(known[1]) or 0, {}
local isRaised, follow = false, now
for turn = 1, size do texts[ARGV[turn]] = known[turn + 1] end
local function tokenText(token) return token == now and nowText or digits(token) end
local function raise(token)
if token > last then last, isRaised = token, true end
end
local function nextToken()
local token = last < now and now or last + 1
return token <= LAST_TOKEN and token or nil
end
local function learn(seen)
if seen <= math.min(now + YEAR, LAST_TOKEN) then raise(seen) end
return seen <= last
end
local function refuse(where) error({ where = where }) end
local function write(...)
local done = try(...)
if type(done) ~= 'table' or not done.err then return done end
call('HDEL', R, '?')
return call(...)
end
local function isOurs(text)
if text == 'F' then return true end
return match(text, '^[HQO]%d+()[xes]%S+ ') == 102
end
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
local function numberOf(text)
local number = numbers[text]
if not number then
number = tonumber(text) or 0
numbers[text] = number
end
return number
end
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
local function need(state, time)
if time > state.needed then state.needed = time end
end
local function clientOf(state, id)
local client = state.clients[id]
if client == nil then
local text = state.waiting > 0 and get(state, 'c' .. id)
local letter, times, base, waiting = match(text or '', '^([as])(%d+) (%d+) (%d+)$')
client = times and #times == 32 and {
isSuspect = letter == 's', gone = sub(times, 1, 16), touch = sub(times, 17),
base = tonumber(base), waiting = tonumber(waiting),
}
state.clients[id] = client
end
return client
end
local function putClient(state, id, client)
local letter = client.isSuspect and 's' or 'a'
local times, base = client.gone .. client.touch .. ' ', client.base .. ' '
state.clients[id] = client
set(state, 'c' .. id, letter .. times .. base .. client.waiting)
end
local function lookBack(state, client)
if client.isSuspect and state.next > client.base then state.next = client.base + 1 end
end
local function dropClient(state, id)
state.clients[id] = false
set(state, 'c' .. id, false)
end
local function setSuspect(state, id)
local client = clientOf(state, id)
if not client then return end
client.isSuspect = true
putClient(state, id, client)
end
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
if get(state, field) == found[at + 1] then set(state, field, false) end
elseif not clientOf(state, entry.client).isSuspect then
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
${shared}
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
local function blockage(state)
local next = nextToExpire(state)
return next and ' ' .. next.text or ''
end
local function lapse(state, holder)
dropHolder(state, holder)
if holder.confirmed then return end
local id = complete(holder).client
local client = clientOf(state, id)
if client and client.gone - SILENT_PERIODS * client.touch < holder.expiry then
setSuspect(state, id)
end
end
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
local function allows(state, done)
if done == 0 then return true end
if spare == 0 then
state.isBehind = true
return false
end
spare = spare - 1
return true
end
local function push(client, message)
redis.set_repl(redis.REPL_NONE)
local heard = try('PUBLISH', client, message)
redis.set_repl(redis.REPL_ALL)
return heard == 0 and flags % 2 == 1 and 1 or heard
end
local function pushNews(state, client, kind, owner, token, detail)
call('HDEL', R, '?')
local number = format('%.0f', token)
local heard = push(client, kind .. cjson.encode({ state.name, owner, number, detail }))
if type(heard) == 'table' then error(heard) end
end
local function endMs(time) return math.ceil(time / 1000) + 100 end
local function handOff(state, entry, token, toucher)
local key, request, text = companion(state, 'q'), entry.request, tokenText(token)
call('ZREM', key, entry.text)
local times = text .. ' ' .. sub(request, 17, 20) .. ' ' .. nowText .. ' ' .. sub(request, 21, 36)
local heard = push(entry.client, 'g' .. entry.owner .. ' ' .. times .. ' ' .. state.name)
if heard == 0 and entry.client ~= toucher or type(heard) == 'table' then
write('ZADD', key, entry.position, entry.text)
call('PEXPIREAT', key, endMs(state.keptUntil))
if type(heard) == 'table' then error(heard) end
return setSuspect(state, entry.client)
end
dropWaiter(state, entry)
grant(state, entry, token, text, false)
end
local function serve(state, toucher)
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
handOff(state, first, token, toucher)
end
done = done + 1
end
end
local function tombstoneOf(state, owner)
if state.tombstone <= nowText then return nil end
local text = try('GET', companion(state, 't' .. owner))
if not text then return nil end
if type(text) == 'table' or find(text, '%D') ~= 17 then refuse('the tombstone of an owner') end
local keptUntil = sub(text, 1, 16)
if keptUntil <= nowText then return nil end
return { keptUntil = keptUntil, reason = sub(text, 17, 17) == 'r' and sub(text, 18) }
end
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
local function watch(state, id, gone)
if state.bound == NEVER then state.isWatched = true end
if gone < state.bound then state.bound = gone end
write('ZADD', companion(state, 'g'), gone, id)
end
local function setAlive(state, id)
local client = state.waiting > 0 and clientOf(state, id)
if not client then return end
lookBack(state, client)
local gone = digits(now + SILENT_PERIODS * client.touch)
if gone < client.gone then watch(state, id, gone) end
client.gone, client.isSuspect = gone, false
putClient(state, id, client)
need(state, gone)
end
local function enqueue(state, asked)
if state.waiting > 0 then checkQueue(state) end
local id, request = asked.client, asked.request
local client, position = clientOf(state, id), state.last + 1
local touch = sub(request, 37, 52)
if not state.hasHash then clear(state) end
if state.waiting == 0 then state.next, state.isQueueNew = 0, true end
write('ZADD', companion(state, 'q'), position, nowText .. request)
if not client then
local gone = digits(now + SILENT_PERIODS * touch)
client = { gone = gone, touch = touch, base = state.last, waiting = 0 }
watch(state, id, gone)
else
if touch > client.touch then client.touch = touch end
local gone = digits(now + SILENT_PERIODS * touch)
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
if text and not isOurs(text) then
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
local motion
local function moving()
if motion == nil then
local answered = flags % 2 == 1 and try('EXISTS', R .. '?', R .. '!')
motion = type(answered) == 'table' and answered.err
end
return motion
end
local function open(name, owner, client, toucher)
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
serve(state, toucher)
return state
end
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
if found.err then return '!FOREIGN ' .. R .. ':' .. name end
if found.ok ~= kind and found.ok ~= 'none' then
return '!FOREIGN ' .. key .. ' (a ' .. found.ok .. ')'
end
end
end
return '!' .. (match(said, '%u%u%u+ .*') or said) .. ' (user_script)'
end
local function nothing() return nil end
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
if isRaised or flags >= 4 then
added[#added + 1], added[#added + 2] = '', isRaised and digits(last) or known[1] or '0'
end
if removed[1] then call('HDEL', R, unpack(removed)) end
if added[1] then write('HSET', R, unpack(added)) end
if micros % 32 == 0 and not moving() then
${sweep}
end
replies[#replies + 1] = run
return replies
end`;
/** The name of a script. */
export type Verb = "acquire" | "release" | "renew" | "heartbeat" | "inspect" | "revoke";

export const SCRIPTS: Readonly<Record<Verb, string>> = {
  acquire: `${clock}
local LAST = '9007199254739967'
if count == 2 or count == 3 then
local name, command = ARGV[1], ARGV[2]
local how = byte(command)
known = call('HMGET', R, '', name)
local last, seen = known[1] or '', sub(command, 18, 33)
if (how == 88 or how == 120) and not known[2] and nowText <= sub(command, 2, 17)
and (last == '' or #last == 16) and (seen < nowText or seen <= last) then
local token, low, span = nowText, micros, sub(command, 50, 53)
if last >= nowText then
low = sub(last, 1, 10) == seconds and (tonumber(sub(last, 11)) or 1e6) + 1
token = low and low < 1e6 and seconds .. format('%06d', low)
end
local top = token
if token and span ~= '0001' then
low = low + span - 1
top = low < 1e6 and #seconds == 10 and seconds .. format('%06d', low)
end
if top and token > last and token <= LAST then
local entry = 'H' .. nowText .. nowText .. token .. sub(command, 34)
if type(try('HSET', R, name, entry, '', top)) == 'number' then
if micros % 32 == 0 and flags % 2 == 0 then
${sweep}
end
if token == nowText and not run then return nowText end
return { nowText, token == nowText and 'G' or 'G' .. token, run }
end
end
end
end
${digits}
if count == 2 and byte(ARGV[2]) == 88 and known[2] and byte(known[2]) ~= 72 and known[2] ~= 'F' then
local name, command, last, text = ARGV[1], ARGV[2], known[1] or '', known[2]
local owner, id = match(command, '^(%S+) (%S+) ', 87)
local length = byte(text) == 79 and sub(text, 70, 85) or sub(text, 50, 65)
local now, key, seen = tonumber(nowText), R .. ':' .. name, sub(command, 18, 33)
if owner and match(text, '^[QO]%d+()[xes]%S+ ') == 102
and sub(text, 2, 17) + length > now and sub(text, 103, 103 + #owner) ~= owner .. ' '
and nowText <= sub(command, 2, 17) and #last == 16 and last < LAST and seen <= last then
local found = try('HMGET', key, 'k', 'o' .. owner, 'c' .. id)
local times, waiting, place, next = match(found[1] or '', '^(%d+) (%d+) (%d+) (%d+)$')
local touch, base, own = sub(command, 70, 85), place, '0'
local gone, isNew = digits(now + 3 * touch), not found[3]
if not isNew then
local before = nil
before, base, own = match(found[3], '^a(%d+) (%d+) (%d+)$')
if not own or sub(before, 17) ~= touch or sub(before, 1, 16) > gone then place = nil end
end
if times and place and not found[2] and waiting ~= '0' and sub(times, 1, 16) > nowText
and gone <= sub(times, 17, 32) and sub(times, 33) <= nowText
and (not isNew or sub(times, 1, 16) < LAST) and call('EXISTS', R .. 'q:' .. name) == 1 then
local spot, bound = place + 1, sub(times, 1, 16)
local added = try('ZADD', R .. 'q:' .. name, spot, nowText .. sub(command, 34))
if type(added) == 'number' then
if isNew then
call('ZADD', R .. 'g:' .. name, gone, id)
if gone < bound then bound = gone end
end
local sums = bound .. sub(times, 17) .. ' ' .. waiting + 1 .. ' ' .. spot .. ' ' .. next
local client = 'a' .. gone .. touch .. ' ' .. base .. ' ' .. own + 1
call('HSET', key, 'k', sums, 'o' .. owner, spot, 'c' .. id, client)
return { nowText, 'Q' .. waiting .. ' ' .. text }
end
end
end
end
${rules}
local function acquire(state, command, asked, how)
if nowText > sub(command, 2, 17) then return 'L' end
if tombstoneOf(state, asked.owner) then return 'E' end
if not learn(tonumber(sub(command, 18, 33))) then return 'Us' end
local mine, mark = holderOf(state, asked.owner), state.mark
if mine then
if not mine.confirmed then extend(state, mine, sub(mine.text, 50, 65)) end
return 'g' .. tokenOf(mine) .. ' ' .. spanOf(mine) .. format(' %.0f', mine.expiry - now)
end
if mark then return 'M' .. mark.token .. format(' %.0f ', mark.keptUntil - now) .. mark.meta end
if waiterOf(state, asked.owner) then return 'Q-' .. blockage(state) end
local token = nextToken()
if not token then return 'Ul' end
if fits(state, asked) then
local first, isUnknown = head(state)
if not first and not isUnknown then
local text = tokenText(token)
grant(state, asked, token, text, true)
local reply = token == follow and 'G' or 'G' .. text
follow = token + sub(asked.request, 17, 20)
return reply
end
end
if how == 'p' then return 'Ut' end
if how == 'x' or how == 'e' or how == 's' then return 'B' .. blockage(state) end
return 'Q' .. enqueue(state, asked) .. blockage(state)
end
local before, after, terms, isTimely, refused = '', '', '', nil, nil
local start = 'H' .. nowText .. nowText
local function spell(command)
before, after = sub(command, 1, 86), sub(command, find(command, ' ', 87, true) or 87)
local how = byte(command)
terms, isTimely = sub(before, 34), (how == 88 or how == 120) and nowText <= sub(before, 2, 17)
and sub(before, 18, 33) < nowText
end
return answer(function(name, command, text)
if refused == nil then
local answered = try('HSETNX', R, '', '0')
refused = type(answered) == 'table' and answered.err or false
end
if refused then return '!' .. refused end
local isDitto = byte(command) == 34
if not isDitto then spell(command) end
local token = isTimely and not text and nextToken()
if not token then return nil end
local digitsOf = tokenText(token)
local owner = isDitto and sub(command, 2, -2) .. after or sub(command, 87)
texts[name] = start .. digitsOf .. terms .. owner
local isNext = token == follow
follow = token + sub(terms, 17, 20)
raise(follow - 1)
return isNext and 'G' or 'G' .. digitsOf
end, function(name, command)
if byte(command) == 34 then command = before .. sub(command, 2, -2) .. after end
local asked = parse(sub(command, 34))
local how = sub(command, 1, 1)
if not asked then return 'Ut' end
local state = open(name, asked.owner, asked.client)
return save(state, how == 'u' and 'Ut' or acquire(state, command, asked, how))
end)`,
  release: `${clock}
local name, owner, text, flag, isHeld = ARGV[1], ARGV[2], nil, nil, nil
if count == 2 or count == 3 then
text = call('HGET', R, name)
flag = text and sub(text, 103, 102 + #owner) == owner and byte(text)
if flag == 72 or flag == 81 then
local ttl = sub(text, 50, 65)
isHeld = sub(text, 2, 11) == seconds and ttl >= '0000000001000000' and ttl <= '3153600000000000'
or (tonumber(sub(text, 2, 17)) or 0) + (tonumber(ttl) or 0) > seconds * 1e6 + micros
end
if isHeld and flag == 72 then
call('HDEL', R, name)
if run then return { nowText, 'R', run } end
return nowText
end
end
${digits}
if isHeld and count == 2 then
local key, queue = R .. ':' .. name, R .. 'q:' .. name
local first = try('ZRANGE', queue, 0, 0, 'WITHSCORES')
local member, position, id = first[1], first[2], nil
owner, id = match(member or '', '^%d+x(%S+) (%S+) ')
local found = owner and try('HMGET', key, 'k', 'c' .. id) or {}
local times, waiting, place, next = match(found[1] or '', '^(%d+) (%d+) (%d+) (%d+)$')
local patience, base, own = match(found[2] or '', '^(a%d+) (%d+) (%d+)$')
if own and times and next == '0' and waiting > '0' and sub(times, 1, 16) > nowText
and tonumber(base) < tonumber(position) then
local last = call('HGET', R, '') or ''
local token = last < nowText and nowText
or #last == 16 and last < '9007199254739967' and digits(last + 1)
if token and #last == 16 then
local span, offer = sub(member, 33, 36), sub(member, 37, 52)
call('ZREM', queue, member)
redis.set_repl(redis.REPL_NONE)
local words = { 'g' .. owner, token, span, nowText, offer, name }
local heard = try('PUBLISH', id, table.concat(words, ' '))
redis.set_repl(redis.REPL_ALL)
if heard == 0 or type(heard) == 'table' then
call('ZADD', queue, position, member)
else
local entry, top = 'O' .. nowText .. nowText .. token .. sub(member, 17), token
if span ~= '0001' then top = digits(token + span - 1) end
local sums = times .. ' ' .. waiting - 1 .. ' ' .. place .. ' 0'
if own == '1' then
call('HDEL', key, 'o' .. owner, 'c' .. id)
call('HSET', key, 'k', sums)
else
call('HDEL', key, 'o' .. owner)
call('HSET', key, 'k', sums, 'c' .. id, patience .. ' ' .. base .. ' ' .. own - 1)
end
call('HSET', R, name, entry, '', top)
return { nowText, 'R' .. offer }
end
end
end
end
${rules}
return answer(function(name, command, text)
if byte(command) == 32 then return nil end
if not text then return 'r' end
if byte(text) == 72 and sub(text, 103, 102 + #command) == command
and numberOf(sub(text, 2, 17)) + numberOf(sub(text, 50, 65)) > now then
texts[name] = false
return 'R'
end
end, function(name, command)
local owner, tombstone, kept, meta = sub(command, 1, -2), nil, nil, nil
if byte(command) == 32 then
tombstone, kept, owner, meta = match(command, '^ (%d+) (%d*) (%S+) (.*)$')
end
local state = open(name, owner, '')
tombstone = math.min(tonumber(tombstone or 0), now + LONGEST)
if tombstone > now then putTombstone(state, owner, tombstone) end
local held = holderOf(state, owner)
local queued = not held and waiterOf(state, owner)
if queued then
call('ZREM', companion(state, 'q'), queued.text)
dropWaiter(state, queued)
end
if held then
dropHolder(state, held)
if tonumber(kept) then
local keptUntil = now + math.min(tonumber(kept), LONGEST)
state.mark = { token = tokenOf(held), keptUntil = keptUntil, meta = meta }
set(state, 'm', digits(keptUntil) .. tokenOf(held) .. meta)
need(state, digits(keptUntil))
end
end
if held or queued then serve(state) end
local next, reply = nextToExpire(state), state.isBehind and state.waiting > 0 and 's' or 'r'
if held then reply = string.upper(reply) end
if next and not next.confirmed then
reply = reply .. format('%.0f', math.max(0, next.expiry - now))
end
return save(state, reply)
end)`,
  renew: `${clock}
local CONFIRM, MAX_TEXT = '----------------', '3153600000000000'
if count == 2 and sub(ARGV[2], 33, 48) == CONFIRM then
local name, owner = ARGV[1], sub(ARGV[2], 49)
local text = call('HGET', R, name)
if text and byte(text) == 79 and sub(text, 103, 102 + #owner) == owner
and match(text, '^%d+()', 2) == 102 then
local now, ttl, expiry = tonumber(nowText), sub(text, 50, 65), nil
expiry = sub(text, 2, 17) + sub(text, 70, 85)
local sums = try('HGET', R .. ':' .. name, 'k')
local times, waiting = match(type(sums) == 'string' and sums or '', '^(%d+) (%d+) %d+ %d+$')
if waiting and sub(times, 1, 16) > nowText and expiry > now and expiry <= now + ttl then
if type(try('HSET', R, name, 'Q' .. nowText .. sub(text, 18))) == 'number' then
local isAlone = waiting == '0' and ' 0 ' or ' 1 '
local reply = 'n' .. ttl .. isAlone .. sub(text, 34, 49) .. ' ' .. sub(text, 66, 69)
return { nowText, reply }
end
end
end
end
${digits}
${rules}
local function renew(state, owner, ttl, heir)
local holder = holderOf(state, owner)
if not holder then
local old = tombstoneOf(state, owner)
if old and old.reason then return 'Ov' .. old.reason end
return state.holder and 'Or' or 'Om'
end
if ttl ~= CONFIRM then
extend(state, holder, ttl)
elseif not holder.confirmed then
extend(state, holder, sub(holder.text, 50, 65))
end
if heir ~= '' then
local stop = select(2, find(holder.text, '^%S+ %S+', 103))
holder.text = sub(holder.text, 1, 102) .. owner .. ' ' .. heir .. sub(holder.text, stop + 1)
if holder ~= state.holder then set(state, 'h' .. owner, holder.text) end
end
local waiting = state.waiting > 0 and ' 1 ' or ' 0 '
local times = format('n%.0f', holder.expiry - now) .. waiting
return times .. tokenOf(holder) .. ' ' .. spanOf(holder)
end
local owner, heir, seen, ttl, isLate, ends = nil, '', 0, CONFIRM, nil, 0
return answer(function(name, command, text)
if byte(command) == 34 then
owner = sub(command, 2)
else
owner, heir = match(command, '^(%S+ )(%S*)$', 49)
seen, ttl = tonumber(sub(command, 17, 32)), sub(command, 33, 48)
isLate = nowText > sub(command, 1, 16)
ends = ttl == CONFIRM and 0 or now + ttl
end
if not text or byte(text) ~= 72 or sub(text, 103, 102 + #owner) ~= owner then return nil end
if heir ~= '' or isLate or ttl > MAX_TEXT then return nil end
local expiry = numberOf(sub(text, 2, 17)) + numberOf(sub(text, 50, 65))
if expiry <= now or expiry > ends then return nil end
learn(seen)
texts[name] = 'H' .. nowText .. sub(text, 18, 49) .. ttl .. sub(text, 66)
return 'N' .. sub(text, 34, 49) .. sub(text, 66, 69)
end, function(name)
owner = sub(owner, 1, -2)
local state = open(name, owner, '')
if ttl ~= CONFIRM then
if ttl > MAX_TEXT then return save(state, 'Ut') end
if isLate then return save(state, 'L') end
learn(seen)
end
return save(state, renew(state, owner, ttl, heir))
end)`,
  heartbeat: `${clock}
${digits}
${rules}
return answer(nothing, function(name, client)
local state = open(name, '', client, client)
local found, parts = {}, {}
if not state.holder then
if state.count > 0 then found = shared().offers(state, client, SLICE + 1) end
elseif not state.holder.confirmed and complete(state.holder).client == client then
found = { state.holder }
end
for at = 1, math.min(#found, SLICE) do
local holder, text = found[at], found[at].text
if holder.expiry > now then
local times = sub(text, 2, 17) .. ' ' .. sub(text, 70, 85)
local span = spanOf(holder) .. ' '
parts[#parts + 1] = ' ' .. holder.owner .. ' ' .. tokenOf(holder) .. ' ' .. span .. times
end
end
local waiting, isMore = clientOf(state, client), #found > #parts
local letter = (isMore or state.isBehind and state.waiting > 0) and 't' or 'T'
local counts = (waiting and waiting.waiting or 0) .. ' ' .. #parts
return save(state, letter .. counts .. table.concat(parts) .. blockage(state))
end)`,
  inspect: `${clock}
${digits}
${rules}
return answer(nothing, function(name)
local state, held, waiting = open(name, '', ''), {}, {}
local holders = { state.holder }
if state.count > 0 then holders = shared().each(state) end
for _, holder in ipairs(holders) do
if holder.expiry > now then held[#held + 1] = holder.text end
end
if state.waiting > 0 then
local members = call('ZRANGE', companion(state, 'q'), 0, -1, 'WITHSCORES')
for at = 1, #members, 2 do
local entry = waiterFrom(state, members[at], tonumber(members[at + 1]))
if entry then waiting[#waiting + 1] = entry.text end
end
end
local mark = state.mark
local left = mark and mark.token .. format(' %.0f ', mark.keptUntil - now) .. mark.meta
return save(state, { left or '', held, waiting })
end)`,
  revoke: `${clock}
${digits}
${rules}
return answer(nothing, function(name, command)
local token, reason = match(command, '^(%d+) (.*)$')
local state, number = open(name, '', ''), tonumber(token)
if state.mark and tonumber(state.mark.token) == number then
dropMark(state)
return save(state, 'V1')
end
local holder = state.holder
if holder then
local first = tokenOf(holder) + 0
if number < first or number >= first + spanOf(holder) then holder = nil end
elseif state.count > 0 then
holder = shared().with(state, number)
end
if not holder or holder.expiry <= now then return save(state, 'V0') end
local client, owner = complete(holder).client, holder.owner
dropHolder(state, holder)
putTombstone(state, owner, holder.expiry, reason)
pushNews(state, client, 'v', owner, tokenOf(holder), reason)
serve(state)
return save(state, 'V1')
end)`,
};
