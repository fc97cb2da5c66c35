// Written by `npm run lua` from lua/*.lua: change those, and run it.
export const REQUEST = {
  ttl: [0, 16],
  span: [16, 20],
  letter: [20, 21],
  words: [21],
} as const;
export const FRESH = {
  form: [0, 1],
  granted: [1, 17],
  request: [17],
  ttl: [17, 33],
  span: [33, 37],
  letter: [37, 38],
  words: [38],
} as const;
export const RAISED = {
  form: [0, 1],
  granted: [1, 17],
  token: [17, 33],
  request: [33],
  ttl: [33, 49],
  span: [49, 53],
  letter: [53, 54],
  words: [54],
} as const;
export const FULL = {
  form: [0, 1],
  granted: [1, 17],
  second: [1, 11],
  fraction: [11, 17],
  token: [17, 33],
  expiry: [33, 49],
  request: [49],
  ttl: [49, 65],
  span: [65, 69],
  letter: [69, 70],
  words: [70],
} as const;
export const WAITER = {
  since: [0, 16],
  request: [16],
  ttl: [16, 32],
  span: [32, 36],
  letter: [36, 37],
  words: [37],
} as const;
export const SCRIPT: string = `local call, try, sub = redis.call, redis.pcall, string.sub
local find, format = string.find, string.format
local register, count, clock = KEYS[1], #ARGV, call('TIME')
local known, loneText, loneReply
local seconds, micros = clock[1], clock[2]
local nowText = seconds .. micros
if #seconds ~= 10 or #micros ~= 6 then
nowText = sub('0000000000', #seconds + 1) .. seconds .. sub('000000', #micros + 1) .. micros
end
local LONGEST, MOST_TURNS, SECOND = '3153600000000000', '1024', '0000000001000000'
local flags, run = count % 2 == 1 and tonumber(ARGV[count]) or 0, nil
if flags % 4 > 1 then run = string.match(call('INFO', 'server'), 'run_id:(%x+)') end
if count == 2 or count == 3 then
local name, command = ARGV[1], ARGV[2]
local operation = sub(command, 1, 1)
if operation == 'X' or operation == 'x' then
known = call('HMGET', register, '', name)
loneText = known[2]
local last, span = known[1], sub(command, 50, 53)
local isFree = not known[2] and (not last or #last == 16 and last < nowText)
local isTimely = isFree and nowText <= sub(command, 2, 17)
and nowText > sub(command, 18, 33)
local request, letter, _ = isTimely and sub(command, 34), nil, nil
if isTimely and span > '0000' and span <= MOST_TURNS and request < LONGEST then
_, letter = find(request, '^%d+x')
end
if letter == 21 then
local lastToken = nowText
if span > '0001' then
local lastMicros = micros + span - 1
local isSameSecond = #seconds == 10 and lastMicros < 1000000
lastToken = isSameSecond and seconds .. format('%06d', lastMicros)
or format('%016.0f', nowText + span - 1)
end
local text = 'f' .. nowText .. request
if type(try('HSET', register, name, text, '', lastToken)) == 'number' then loneReply = 'G' end
end
elseif operation == 'r' then
local text = call('HGET', register, name)
loneText = text
local form = text and sub(text, 1, 1)
local start = form == 'f' and 39 or form == '+' and 55
or form == 'h' and 71
if start and find(text, sub(command, 2), start, true) == start then
local expiry, isHeld
if form == 'h' then
expiry = tonumber(sub(text, 34, 49)) or 0
else
local ttl = form == 'f' and sub(text, 18, 33) or sub(text, 34, 49)
isHeld = sub(text, 2, 11) == seconds and ttl >= SECOND and ttl <= LONGEST
expiry = isHeld or (tonumber(sub(text, 2, 17)) or 0) + (tonumber(ttl) or 0)
end
if isHeld or expiry > seconds * 1000000 + micros then
call('HDEL', register, name)
loneReply = 'R'
end
end
end
if loneReply and not (loneReply == 'G' and micros % 32 == 0) then
if run then return { nowText, loneReply, run } end
return nowText
end
end
local NO_LIMIT = 9007199254740991
local YEAR, LAST_TOKEN = 31536000000000, NO_LIMIT - 1024
local now = tonumber(nowText)
local function push(client, message)
call('HDEL', register, '?')
redis.set_repl(redis.REPL_NONE)
local listeners = call('PUBLISH', client, message)
redis.set_repl(redis.REPL_ALL)
return listeners > 0 or flags % 2 == 1
end
local function decide(name, operation, command, pointer, last)
local NONE, key, place = '0000000000000000', register .. ':' .. name, sub(pointer, 2)
local found, owner, id, offer, touch
if operation == 'c' then
found = try('HMGET', key, 'k', 'x')
elseif operation == 'r' then
found = try('HMGET', key, 'k', 'x', 'w' .. place)
elseif operation == 'X' then
local span = sub(command, 50, 53)
if find(command, '%D', 2) ~= 54 then return nil end
if nowText > sub(command, 2, 17) or sub(command, 34, 49) > LONGEST then
return nil
end
if span == '0000' or span > MOST_TURNS then return nil end
owner, id, offer, touch = string.match(command, '^(%S+) (%S+) (%d+) (%d+)', 55)
if LONGEST - offer < 0 or LONGEST - 4 * touch < 0 then return nil end
found = try('HMGET', key, 'k', 'x', 'o' .. owner, 'c' .. id)
else
return nil
end
local sums, holder = found[1], found[2]
if not sums or not holder or sub(sums, 1, 1) ~= '-' then return nil end
if #sums ~= 113 or find(sums, '%D', 2) then return nil end
if nowText >= sub(sums, 2, 17) then return nil end
local form = sub(holder, 1, 1)
local letter = (form == 'h' or form == 'u') and 70
or form == 'f' and 38 or form == '+' and 54
if not letter or find(holder, '%D', 2) ~= letter then return nil end
if not find(holder, '^[xes]%S+ ', letter) then return nil end
if letter == 70 then
if nowText >= sub(holder, 34, 49) then return nil end
else
local ttl = form == 'f' and sub(holder, 18, 33) or sub(holder, 34, 49)
if sub(holder, 2, 17) + ttl <= now then return nil end
end
local asker = owner and owner .. ' ' or sub(command, 2)
local isHolder = sub(holder, letter + 1, letter + #asker) == asker
if operation == 'c' then
local expiry = sub(holder, 34, 49)
if not isHolder or letter ~= 70 then return nil end
if form == 'u' then
expiry = format('%016.0f', math.max(expiry, now + sub(holder, 50, 65)))
if #expiry > 16 or expiry > sub(sums, 18, 33) then return nil end
local grant = 'h' .. sub(holder, 2, 33) .. expiry .. sub(holder, 50)
local done = try('HSET', key, 'x', grant)
if type(done) == 'table' and done.err then
call('HDEL', register, '?')
call('HSET', key, 'x', grant)
end
end
local waiting = sub(sums, 34, 49) == NONE and ' 0 ' or ' 1 '
local terms = sub(holder, 18, 33) .. ' ' .. sub(holder, 66, 69)
return 'N' .. format('%.0f', expiry - now) .. waiting .. terms
end
local waiting, taken = sub(sums, 34, 49), sub(sums, 82, 97)
if operation == 'r' then
local waiter = found[3]
if not waiter or not isHolder or sub(sums, 66, 81) ~= place then return nil end
if find(waiter, '%D') ~= 37 or sub(waiter, 37, 37) ~= 'x' then
return nil
end
owner, id, offer = string.match(waiter, '^(%S+) (%S+) (%d+)', 38)
if not owner or #offer > 16 then return nil end
local expiry = format('%016.0f', now + offer)
if #expiry > 16 or expiry > sub(sums, 18, 33) then return nil end
local client = call('HGET', key, 'c' .. id)
if not client or find(client, '%D') ~= 81 then return nil end
if sub(client, 81) ~= 'a' or place <= sub(client, 33, 48) then
return nil
end
local token, span = math.max(now, last + 1), sub(waiter, 33, 36)
if token > LAST_TOKEN then return nil end
local tokenText = token == now and nowText or format('%016.0f', token)
local times = ' ' .. tokenText .. ' ' .. span .. ' ' .. nowText .. ' ' .. expiry .. ' '
if not push(id, 'g' .. owner .. times .. name) then return nil end
local left, after = sub(client, 65, 80) - 1, format('%016d', place + 1)
local fewer = format('%016d', waiting - 1)
taken = taken == waiting and fewer or format('%016d', taken - 1)
sums = sub(sums, 1, 33) .. fewer .. sub(sums, 50, 65) .. after .. taken
.. sub(sums, 98, 113)
holder = 'u' .. nowText .. tokenText .. expiry .. sub(waiter, 17)
if left == 0 then
call('HDEL', key, 'w' .. place, 'o' .. owner, 'c' .. id)
call('HSET', key, 'k', sums, 'x', holder)
else
client = sub(client, 1, 64) .. format('%016d', left) .. 'a'
call('HDEL', key, 'w' .. place, 'o' .. owner)
call('HSET', key, 'k', sums, 'x', holder, 'c' .. id, client)
end
return 'R' .. offer, '=' .. after, token + span - 1
end
if found[3] or isHolder then return nil end
local tombstone = register .. 't' .. owner .. ':' .. name
if nowText < sub(sums, 98, 113) and call('EXISTS', tombstone) == 1 then return nil end
local client, bound, lastPlace = found[4], sub(sums, 2, 17), sub(sums, 50, 65)
local isNew = not client
if isNew then
if bound == '9007199254740991' then return nil end
client = NONE .. format('%016.0f', touch) .. lastPlace .. NONE .. NONE .. 'a'
end
if find(client, '%D') ~= 81 then return nil end
if sub(client, 81) ~= 'a' then return nil end
if sub(client, 49, 64) ~= NONE then return nil end
if tonumber(touch) > tonumber(sub(client, 17, 32)) then return nil end
local gone = format('%016.0f', now + 3 * sub(client, 17, 32))
if gone > sub(sums, 18, 33) or gone < sub(client, 1, 16) then return nil end
local seen = tonumber(sub(command, 18, 33))
if seen > last and seen > math.min(now + YEAR, LAST_TOKEN) then return nil end
if math.max(now, last + 1, seen + 1) > LAST_TOKEN then return nil end
if gone < bound then bound = gone end
local spot, more = format('%016d', lastPlace + 1), format('%016d', waiting + 1)
local next = taken == NONE and spot or sub(sums, 66, 81)
taken = taken == waiting and more or format('%016d', taken + 1)
sums = '-' .. bound .. sub(sums, 18, 33) .. more .. spot .. next .. taken
.. sub(sums, 98, 113)
local mine = format('%016d', sub(client, 65, 80) + 1)
client = gone .. sub(client, 17, 64) .. mine .. 'a'
local entry = nowText .. sub(command, 34)
if isNew then
local added = try('ZADD', register .. 'g:' .. name, gone, id)
if type(added) == 'table' and added.err then return nil end
end
local done =
try('HSET', key, 'k', sums, 'w' .. spot, entry, 'o' .. owner, spot, 'c' .. id, client)
if type(done) == 'table' and done.err then return '!' .. done.err end
return 'Q' .. format('%d ', waiting) .. holder, nil, seen > last and seen or nil
end
if #ARGV == 2 then
local name, command, last = ARGV[1], ARGV[2], known and known[1]
local operation = sub(command, 1, 1)
if operation == 'c' then loneText = call('HGET', register, name) end
if loneText and sub(loneText, 1, 1) == '=' then
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
local size = math.floor(#ARGV / 2)
local texts, numbers, isRaised, motion = {}, {}, nil, nil
local high, base = sub(nowText, 1, 10), now - micros
known = known or call('HMGET', register, '', unpack(ARGV, 1, size))
local last = known[1] and find(known[1], '^%d+$') and tonumber(known[1]) or 0
for turn = 1, size do texts[ARGV[turn]] = known[turn + 1] end
local function digits(number)
local low = number - base
if low >= 0 and low < 1000000 then return high .. format('%06d', low) end
return format('%016.0f', number)
end
local function raise(token)
if token > last then
last, isRaised = token, true
end
return last
end
local function learn(seen)
if seen <= math.min(now + YEAR, LAST_TOKEN) then raise(seen) end
return seen <= last
end
local function nextToken()
local token = math.max(now, last + 1)
return token <= LAST_TOKEN and token or nil
end
local function isTimed(command)
return (find(command, '%D', 2) or 0) >= 50
end
local function spanOf(command)
if find(command, '%D', 2) ~= 54 then return nil end
local span = sub(command, 50, 53)
if sub(command, 34, 49) > LONGEST or span == '0000' or span > MOST_TURNS then return nil end
if sub(command, 54, 54) ~= 'x' then
local weight, limit = string.match(command, '^%S+ %S+ %d+ %d+ (%d+) (%d+) ', 55)
weight = tonumber(weight)
if not weight or weight < 1 or weight > tonumber(limit) then return nil end
end
return tonumber(span)
end
local function put(name, text) texts[name] = text end
local function write(...)
local done = try(...)
if type(done) ~= 'table' or not done.err then return done end
call('HDEL', register, '?')
return call(...)
end
local function moving()
if motion == nil then
local answer = flags % 2 == 1 and try('EXISTS', register .. '?', register .. '!')
motion = type(answer) == 'table' and answer.err
end
return motion
end
local function numberOf(text)
local number = numbers[text]
if not number then
number = tonumber(text) or 0
numbers[text] = number
end
return number
end
local function expiryOf(text)
local form = sub(text, 1, 1)
if form == 'h' or form == 'u' then return numberOf(sub(text, 34, 49)) end
local ttl = form == 'f' and sub(text, 18, 33) or sub(text, 34, 49)
return numberOf(sub(text, 2, 17)) + numberOf(ttl)
end
local function isOurs(text)
local form = sub(text, 1, 1)
if form == '=' then
return #text > 1 and not find(text, '%D', 2)
end
local letter = form == 'f' and 38 or form == '+' and 54
or (form == 'h' or form == 'u') and 70
local _, _, digitsEnd = find(text, '^%d+()[xes]%S+ ', 2)
return letter and digitsEnd == letter
end
local function contended(name, operation, command, pointer)
if moving() then return nil end
local reply, moved, raised = decide(name, operation, command, pointer, last)
if moved then put(name, moved) end
if raised then raise(raised) end
return reply
end
local function sweep()
if micros % 32 ~= 0 or moving() then return end
local many = math.max(4, size)
for _ = 1, 16 do
local sample, dead = call('HRANDFIELD', register, many, 'WITHVALUES'), {}
for at = 1, #sample, 2 do
local name, text, isDead = sample[at], sample[at + 1], nil
if name ~= '' and isOurs(text) then
if sub(text, 1, 1) == '=' then
isDead = call('EXISTS', register .. ':' .. name) == 0
else
isDead = expiryOf(text) <= now
end
end
if isDead then dead[#dead + 1] = name end
end
if dead[1] then call('HDEL', register, unpack(dead)) end
if #dead * 4 < many then break end
many = math.max(16, size)
end
end
local function finish(replies)
local added, removed, add, remove = {}, {}, 0, 0
for turn = 1, size do
local name = ARGV[turn]
local text = texts[name]
local isChanged = text ~= known[turn + 1]
if isChanged and text then
added[add + 1], added[add + 2] = name, text
add = add + 2
elseif isChanged then
remove = remove + 1
removed[remove] = name
end
end
if isRaised or flags >= 4 then
added[add + 1], added[add + 2] = '', isRaised and digits(last) or known[1] or '0'
add = add + 2
end
if remove > 0 then call('HDEL', register, unpack(removed)) end
if add > 0 then write('HSET', register, unpack(added)) end
sweep()
if run then replies[#replies + 1] = run end
return replies
end
if loneReply then
sweep()
if run then return { nowText, loneReply, run } end
return nowText
end
if size == 1 and flags > 0 then
local name, command = ARGV[1], ARGV[2]
local text, reply = texts[name], nil
if text and sub(text, 1, 1) == '=' then
reply = contended(name, sub(command, 1, 1), command, text)
end
if reply then return finish({ nowText, reply }) end
end
local ACQUIRES = { X = 'x', x = 'x', E = 'e', e = 'e', S = 's', s = 's' }
local replies, states, foreign, isGeneral = { nowText }, {}, {}, {}
local apply, commit, refused
local terms, follow = { operation = '"', before = '', after = '' }, now
local isTerse = size > 1
local function refusal()
if refused == nil then
local answer = try('HSETNX', register, '', '0')
refused = type(answer) == 'table' and answer.err or false
end
return refused
end
local function read(operation, command)
local isAcquire = ACQUIRES[operation]
local start = isAcquire and 55 or 50
local stop = find(command, ' ', start, true) or #command
local before, after = sub(command, 1, start - 1), sub(command, stop + 1)
terms = { operation = operation, before = before, after = after }
local isInTime = nowText <= sub(command, 2, 17)
if isAcquire and isInTime and isAcquire ~= 's' and nowText > sub(command, 18, 33) then
terms.span, terms.request = spanOf(command), sub(command, 34, 54)
elseif not isAcquire and isInTime and isTimed(command) and sub(command, 34, 49) <= LONGEST then
terms.expiry, terms.seen = now + sub(command, 34, 49), tonumber(sub(command, 18, 33))
terms.expiryText = digits(terms.expiry)
end
return sub(command, start, stop)
end
local function ownerAt(text, owner)
local form = sub(text, 1, 1)
local start = form == 'f' and 39 or form == '+' and 55
or form == 'h' and 71
if not start or find(text, owner, start, true) ~= start then return nil end
local expiry = expiryOf(text)
if expiry > now then return start, expiry end
end
local function leanAcquire(name, text, owner)
if text and (expiryOf(text) > now or not isOurs(text)) then return nil end
local span, token = terms.span, nextToken()
if not span or not token then return nil end
if refusal() then return '!' .. refused end
raise(token + span - 1)
local isNext, tokenText = token == follow, ''
follow = token + span
if token == now then
put(name, 'f' .. nowText .. terms.request .. owner .. terms.after)
else
tokenText = digits(token)
put(name, '+' .. nowText .. tokenText .. terms.request .. owner .. terms.after)
end
return isNext and 'G' or 'G' .. tokenText
end
local function leanRelease(name, text, owner)
if not text then return 'r' end
if not ownerAt(text, owner) then return nil end
put(name, false)
return 'R'
end
local function leanRenew(name, text, owner)
if not terms.expiry or not text or not isOurs(text) then return nil end
local start, expiry = ownerAt(text, owner)
if not start or expiry > terms.expiry or terms.expiry > NO_LIMIT then return nil end
learn(terms.seen)
local granted, request = sub(text, 2, 17), sub(text, start - 21)
local token = start == 39 and granted or sub(text, 18, 33)
put(name, 'h' .. granted .. token .. terms.expiryText .. request)
return 'n' .. token .. sub(request, 17, 20)
end
local function fail(name, failure)
foreign[name] = (function()
local function isWrong(answer) return type(answer) == 'table' and answer.err ~= nil end
return function(name, failure)
local key, said = register .. ':' .. name, failure
if type(failure) == 'table' then
if failure.where then return 'FOREIGN ' .. failure.where .. ' (lock ' .. name .. ')' end
said = failure.err
end
if not string.find(said, 'WRONGTYPE') then
return (string.match(said, '%u%u%u+ .*') or said) .. ' (user_script)'
end
if not isWrong(try('HGET', key, 'k')) then
local letter = 'g:'
for _, other in ipairs({ 'e:', 'u:' }) do
if isWrong(try('ZRANGE', register .. other .. name, 0, 0)) then letter = other end
end
key = register .. letter .. name
end
local found = try('TYPE', key)
return 'FOREIGN ' .. key .. (found.ok and ' (a ' .. found.ok .. ')' or '')
end
end)()(name, failure)
end
for turn = 1, size do
local name, command, reply, owner = ARGV[turn], ARGV[size + turn], nil, nil
local operation, text = sub(command, 1, 1), texts[name]
if operation == '"' then
owner, operation, command = sub(command, 2), terms.operation, nil
elseif ACQUIRES[operation] or operation == 'n' then
owner = read(operation, command)
end
if foreign[name] then
reply = '!' .. foreign[name]
elseif states[name] then
reply = nil
elseif text and sub(text, 1, 1) == '=' then
if size > 1 then
command = command or terms.before .. owner .. terms.after
reply = contended(name, operation, command, text)
end
elseif operation == 'r' then
reply = leanRelease(name, text, sub(command, 2))
elseif operation == 'n' then
reply = leanRenew(name, text, owner)
elseif owner then
reply = leanAcquire(name, text, owner)
end
if not reply then
if not apply then
apply, commit = (function()
local function refuse(where) error({ where = where }) end
local entries = {}
function entries.read(entry, request)
local pattern = '^(%S+) (%S+) (%d+) (%d+) '
local _, stop, owner, client, offer, touch = find(request, pattern, 22)
local letter, weight, limit = sub(request, 21, 21), 1, NO_LIMIT
if not stop or find(request, '%D') ~= 21 then return nil end
if letter ~= 'x' then
weight, limit = string.match(request, '^(%d+) (%d+)', stop + 1)
weight, limit = tonumber(weight), tonumber(limit)
end
entry.request, entry.owner, entry.client = request, owner, client
entry.ttl, entry.offer, entry.touch = tonumber(sub(request, 1, 16)), tonumber(offer), touch
entry.weight, entry.limit, entry.span = weight, limit, tonumber(sub(request, 17, 20))
entry.mode = letter == 's' and 's' or 'x'
if not weight or #offer > 16 or #touch > 16 then return nil end
return math.max(weight, limit) <= NO_LIMIT and entry or nil
end
function entries.inherit(entry, heir)
local _, stop = find(entry.request, '^%S+ %S+', 22)
local head = sub(entry.request, 1, 21) .. entry.owner .. ' '
entry.client, entry.request = heir, head .. heir .. sub(entry.request, stop + 1)
end
function entries.holder(text)
local form, expiry = sub(text, 1, 1), expiryOf(text)
local start = form == 'f' and 18 or form == '+' and 34
or 50
local letter = start + 20
if expiry > NO_LIMIT then refuse('a holder') end
return {
text = text, start = start, confirmed = form ~= 'u', expiry = expiry,
owner = string.match(text, '^%S+', start + 21),
mode = sub(text, letter, letter) == 's' and 's' or 'x',
}
end
function entries.complete(entry)
if entry.request then return entry end
local text, start = entry.text, entry.start
entry.granted = tonumber(sub(text, 2, 17))
entry.token = start == 18 and entry.granted or tonumber(sub(text, 18, 33))
return entries.read(entry, sub(text, start)) or refuse('a holder')
end
function entries.text(entry)
if not entry.text then
local times = string.format('%016.0f%016.0f%016.0f', entry.granted, entry.token, entry.expiry)
entry.text = (entry.confirmed and 'h' or 'u') .. times .. entry.request
entry.start = 50
end
return entry.text
end
local CHUNK = 2000
local hash = {}
function hash.companion(state, letter) return register .. letter .. ':' .. state.name end
function hash.get(state, field)
local value = state.fields[field]
if value == nil then
value = state.hasHash and call('HGET', state.key, field)
state.fields[field] = value
end
return value
end
function hash.set(state, field, value)
state.fields[field], state.dirty[field] = value, true
end
function hash.need(state, time)
if time > state.needed then state.needed = time end
end
function hash.endMs(time) return math.ceil(time / 1000) + 100 end
local function clear(state)
local byExpiry, offers = hash.companion(state, 'e'), hash.companion(state, 'u')
local bySilence = hash.companion(state, 'g')
if call('EXISTS', state.key, byExpiry, offers, bySilence) == 0 then return end
local remove = (function()
return function(key, byExpiry, offers, bySilence)
local sums = call('HGET', key, 'k')
local isHash = sums and #sums == 113 and find(sums, '^[-*]%d+$')
if not isHash and call('EXISTS', key) == 1 then refuse(key) end
local holder = call('ZRANGE', byExpiry, -1, -1)[1]
if holder and find(sub(holder, 1, 16), '%D') then refuse(byExpiry) end
for _, byClient in ipairs({ offers, bySilence }) do
local client = call('ZRANGE', byClient, 0, 0)[1]
if client and not find(client, '{hf:', 1, true) then refuse(byClient) end
end
call('UNLINK', key, byExpiry, offers, bySilence)
end
end)()
remove(state.key, byExpiry, offers, bySilence)
end
function hash.load(name, owner, client)
local text = texts[name]
local state = {
name = name, key = register .. ':' .. name, hasHash = false, fields = {}, dirty = {},
clients = {}, count = 0, waiting = 0, taken = 0, last = 0, next = 1, bound = NO_LIMIT,
lastTombstone = 0, keptUntil = 0, needed = 0, skips = 0,
}
if not text or sub(text, 1, 1) ~= '=' then
if text and not isOurs(text) then refuse('field ' .. name .. ' of ' .. register) end
clear(state)
state.exclusive = text and entries.holder(text) or nil
return state
end
local next, place, id = 'w' .. sub(text, 2), 'o' .. owner, 'c' .. client
local found = call('HMGET', state.key, 'k', 'x', 's', 'm', next, place, id)
local sums, exclusive, fields, mark = found[1], found[2], state.fields, found[4]
if not sums then
if not isOurs(text) then refuse('field ' .. name .. ' of ' .. register) end
clear(state)
return state
end
local isWhole = #sums == 113 and find(sums, '^[-*]%d+$')
state.last = isWhole and tonumber(sub(sums, 50, 65)) or NO_LIMIT
if state.last >= NO_LIMIT then refuse('field k of ' .. state.key) end
state.hasHash = true
state.bound = tonumber(sub(sums, 2, 17))
state.keptUntil = tonumber(sub(sums, 18, 33))
state.waiting, state.taken = tonumber(sub(sums, 34, 49)), tonumber(sub(sums, 82, 97))
state.next = math.min(tonumber(sub(sums, 66, 81)), state.last + 1)
state.lastTombstone = tonumber(sub(sums, 98, 113))
fields.s, fields[next], fields[place], fields[id] = found[3], found[5], found[6], found[7]
if exclusive then
if not isOurs(exclusive) or sub(exclusive, 1, 1) == '=' then
refuse('field x of ' .. state.key)
end
state.exclusive = entries.holder(exclusive)
end
if fields.s then
if not find(fields.s, '^%d+ %d+ %d+[ %d:]*$') then refuse('field s of ' .. state.key) end
state.count = tonumber(string.match(fields.s, '^%d+'))
end
if mark then
local times = sub(mark, 1, 32)
if #mark < 32 or find(times, '%D') then refuse('field m of ' .. state.key) end
local keptUntil, token = tonumber(sub(mark, 1, 16)), tonumber(sub(mark, 17, 32))
state.mark = { keptUntil = keptUntil, token = token, meta = sub(mark, 33) }
end
return state
end
function hash.saveFields(state)
local writes, drops, last, drop = {}, {}, 0, 0
for field in pairs(state.dirty) do
local value = state.fields[field]
if value then
writes[last + 1], writes[last + 2] = field, value
last = last + 2
elseif state.hasHash then
drop = drop + 1
drops[drop] = field
end
end
for first = 1, drop, CHUNK do
call('HDEL', state.key, unpack(drops, first, math.min(first + CHUNK - 1, drop)))
end
for first = 1, last, CHUNK do
write('HSET', state.key, unpack(writes, first, math.min(first + CHUNK - 1, last)))
end
end
function hash.isLean(state)
local holder = state.exclusive
if state.hasHash or not holder or not holder.confirmed or state.count > 0 then return false end
return state.taken == 0 and not state.mark and state.lastTombstone <= now
end
function hash.save(state)
local holder, isLean = state.exclusive, hash.isLean(state)
local isUsed = holder or state.count > 0 or state.waiting > 0 or state.mark
or state.lastTombstone > now
if isLean or not isUsed then
if state.hasHash or state.isShared or state.isWatched then
local e, u = hash.companion(state, 'e'), hash.companion(state, 'u')
call('UNLINK', state.key, e, u, hash.companion(state, 'g'))
end
if isLean and holder.isNew then put(state.name, entries.text(holder)) end
if not isUsed and texts[state.name] then put(state.name, false) end
return
end
if holder and (holder.isNew or not state.hasHash) then
hash.set(state, 'x', entries.text(holder))
hash.need(state, holder.expiry)
elseif state.isVacated and not holder then
hash.set(state, 'x', false)
end
for id, client in pairs(state.clients) do
if client and client.isChanged then
local times = string.format('%016.0f%016.0f%016.0f', client.gone, client.touch, client.base)
local counts = string.format('%016.0f%016.0f', client.passed, client.waiting)
hash.set(state, 'c' .. id, times .. counts .. (client.suspect and 's' or 'a'))
end
end
if state.hasHash and not state.isChanged and not next(state.dirty) then return end
local keptUntil, isMore = state.keptUntil, state.count > 0 or state.mark
if not (holder or isMore or state.waiting > 0) then
keptUntil = state.lastTombstone
elseif state.needed > keptUntil then
keptUntil = math.floor(state.needed + (state.needed - now) / 2)
end
local isMoved = keptUntil ~= state.keptUntil
local times = string.format('%016.0f%016.0f', state.bound, keptUntil)
local places = string.format('%016.0f%016.0f%016.0f', state.waiting, state.last, state.next)
local rest = string.format('%016.0f%016.0f', state.taken, state.lastTombstone)
local letter = isMore and '*' or '-'
hash.set(state, 'k', letter .. times .. places .. rest)
hash.saveFields(state)
if isMoved then call('PEXPIREAT', state.key, hash.endMs(keptUntil)) end
if state.isShared or isMoved and state.count > 0 then
call('PEXPIREAT', hash.companion(state, 'e'), hash.endMs(keptUntil))
call('PEXPIREAT', hash.companion(state, 'u'), hash.endMs(keptUntil))
end
if state.isWatched or isMoved and state.bound < NO_LIMIT then
call('PEXPIREAT', hash.companion(state, 'g'), hash.endMs(keptUntil))
end
if not state.hasHash or state.isHandedOff then
put(state.name, string.format('=%016.0f', state.next))
end
end
local FAR = 1000000000
local queue = {}
local MOST_PASSED = 256
local MOST_SILENT = 64
function queue.client(state, id)
local client = state.clients[id]
if client == nil then
local text = hash.get(state, 'c' .. id)
client = false
if text and #text == 81 and find(text, '^%d+[as]$') then
client = {
gone = tonumber(sub(text, 1, 16)), touch = sub(text, 17, 32),
base = tonumber(sub(text, 33, 48)), passed = tonumber(sub(text, 49, 64)),
waiting = tonumber(sub(text, 65, 80)), suspect = sub(text, 81, 81) == 's',
}
end
state.clients[id] = client
end
return client
end
function queue.dropClient(state, id)
state.clients[id], state.isChanged = false, true
hash.set(state, 'c' .. id, false)
end
function queue.entry(state, place)
local text = hash.get(state, 'w' .. digits(place))
if not text or find(text, '%D') ~= 37 then return nil end
return entries.read({ since = sub(text, 1, 16), place = place }, sub(text, 17))
end
local function placeOf(state, owner)
local place = hash.get(state, 'o' .. owner)
local isPlace = place and #place == 16 and find(place, '^%d+$')
return isPlace and tonumber(place) or nil
end
function queue.placesFrom(state, first)
local fields = state.hasHash and call('HGETALL', state.key) or {}
for at = 1, #fields, 2 do
if state.fields[fields[at]] == nil then state.fields[fields[at]] = fields[at + 1] end
end
local places = {}
for field, value in pairs(state.fields) do
if value and #field == 17 and find(field, '^w%d+$') then
local place = tonumber(sub(field, 2, 17))
if place >= first then places[#places + 1] = place end
end
end
table.sort(places)
return places
end
function queue.dropEntry(state, place, owner)
hash.set(state, 'w' .. digits(place), false)
hash.set(state, 'o' .. owner, false)
state.taken, state.isChanged = math.max(0, state.taken - 1), true
end
function queue.isValid(state, entry)
local client = queue.client(state, entry.client)
return client and entry.place > client.base
end
function queue.waiter(state, owner)
local place = state.waiting > 0 and placeOf(state, owner)
local entry = place and queue.entry(state, place)
return entry and entry.owner == owner and queue.isValid(state, entry) and entry or nil
end
function queue.head(state)
local place, entry, far = state.next, nil, nil
while state.taken > 0 and place <= state.last do
if state.skips == MOST_PASSED then
state.isBehind = true
break
end
entry = queue.entry(state, place)
if entry then
local client = queue.client(state, entry.client)
if not client or place <= client.base then
queue.dropEntry(state, place, entry.owner)
elseif not client.suspect then
break
elseif client.passed == 0 then
client.passed, client.isChanged = place, true
end
entry = nil
end
place, state.skips = place + 1, state.skips + 1
if state.last - place > FAR then
far = far or queue.placesFrom(state, place)
while far[1] and far[1] < place do table.remove(far, 1) end
place = far[1] or state.last + 1
end
if state.fields['w' .. digits(place)] == nil and state.hasHash then
queue.readAhead(state, place, math.min(place - state.next, MOST_PASSED))
end
end
if place ~= state.next then
state.next, state.isChanged = place, true
end
return entry, not entry and state.taken > 0 and place <= state.last
end
function queue.readAhead(state, place, many)
local fields = {}
for ahead = 1, many do fields[ahead] = 'w' .. digits(place + ahead - 1) end
for at, text in ipairs(call('HMGET', state.key, unpack(fields))) do
if state.fields[fields[at]] == nil then state.fields[fields[at]] = text end
end
end
function queue.watch(state, id, goneUs)
if state.bound == NO_LIMIT then state.isWatched = true end
state.bound = math.min(state.bound, goneUs)
write('ZADD', hash.companion(state, 'g'), string.format('%.0f', goneUs), id)
end
function queue.add(state, entry, goneUs)
local id, owner, place = entry.client, entry.owner, state.last + 1
local before = placeOf(state, owner)
if before then queue.dropEntry(state, before, owner) end
local client = queue.client(state, id)
if not client then
client = { gone = goneUs, touch = entry.touch, base = state.last, passed = 0, waiting = 0 }
state.clients[id] = client
queue.watch(state, id, goneUs)
else
client.touch = math.max(client.touch, entry.touch)
client.gone = math.max(client.gone, goneUs)
end
hash.need(state, goneUs)
client.waiting, client.isChanged = client.waiting + 1, true
if state.taken == 0 then state.next = place end
state.last, state.waiting, state.taken = place, state.waiting + 1, state.taken + 1
state.isChanged = true
hash.set(state, 'w' .. digits(place), nowText .. entry.request)
hash.set(state, 'o' .. owner, digits(place))
end
function queue.drop(state, entry)
local id = entry.client
local client = queue.client(state, id)
queue.dropEntry(state, entry.place, entry.owner)
state.waiting = math.max(0, state.waiting - 1)
if not client then return end
client.waiting, client.isChanged = client.waiting - 1, true
if client.waiting <= 0 then queue.dropClient(state, id) end
end
function queue.setAlive(state, id, periods)
local client = state.waiting > 0 and queue.client(state, id)
if not client then return end
if client.passed > 0 then queue.lookBack(state, client) end
client.suspect, client.isChanged = false, true
local goneUs = now + periods * client.touch
if goneUs < client.gone then queue.watch(state, id, goneUs) end
client.gone = goneUs
hash.need(state, client.gone)
end
function queue.setSuspect(state, id)
local client = state.waiting > 0 and queue.client(state, id)
if client then client.suspect, client.isChanged = true, true end
end
function queue.lookBack(state, client)
state.next, state.isChanged = math.min(state.next, client.passed), true
client.passed = 0
end
function queue.dropSilent(state)
local key = hash.companion(state, 'g')
state.isSwept = true
for _, id in ipairs(call('ZRANGEBYSCORE', key, '-inf', nowText, 'LIMIT', 0, MOST_SILENT)) do
local client = queue.client(state, id)
if client and client.gone > now then
write('ZADD', key, string.format('%.0f', client.gone), id)
else
call('ZREM', key, id)
if client then
if client.passed > 0 then queue.lookBack(state, client) end
state.waiting = math.max(0, state.waiting - client.waiting)
queue.dropClient(state, id)
end
end
end
local next = call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
state.bound, state.isChanged = math.min(next and tonumber(next) or NO_LIMIT, NO_LIMIT), true
end
local sharedPart
local function shared()
if not sharedPart then
sharedPart = (function()
local part = {}
local BELOW_ZERO = 9007199254740992
local function tokenScore(token) return string.format('%.0f', token - BELOW_ZERO) end
local function offerOf(entry) return entry.client .. ' ' .. digits(entry.token) .. entry.owner end
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
local entry = isOurs(text) and sub(text, 1, 1) ~= '=' and entries.holder(text)
if not entry or entry.owner ~= owner then refuse('a holder in ' .. state.key) end
return entries.complete(entry)
end
local function holderOf(state, letter, member, start)
local entry = part.of(state, sub(member, start))
if not entry then call('ZREM', hash.companion(state, letter), member) end
return entry
end
function part.each(state)
local found, members = {}, call('ZRANGE', hash.companion(state, 'e'), '-inf', '(0', 'BYSCORE')
for _, member in ipairs(members) do
found[#found + 1] = holderOf(state, 'e', member, 2)
end
return found
end
function part.with(state, token)
local key, score = hash.companion(state, 'e'), tokenScore(token)
local found = call('ZRANGE', key, score, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
local entry = found and holderOf(state, 'e', found, 2)
return entry and token < entry.token + entry.span and entry or nil
end
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
function part.next(state)
local key, found, entry = hash.companion(state, 'e'), nil, nil
repeat
found = call('ZRANGE', key, 0, '+inf', 'BYSCORE', 'LIMIT', 0, 1)[1]
local token = found and sub(found, 1, 16)
if found and (#found < 17 or find(token, '%D')) then refuse(key) end
entry = found and holderOf(state, 'e', found, 17)
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
function part.fits(state, request)
local sums, limit = part.sums(state), request.limit
for other in pairs(sums.limits) do limit = math.min(limit, tonumber(other)) end
return sums.weight + request.weight <= limit
end
return part
end)()
end
return sharedPart
end
local holders = {}
function holders.of(state, owner)
local exclusive = state.exclusive
if exclusive and exclusive.owner == owner then return exclusive end
return state.count > 0 and shared().of(state, owner) or nil
end
function holders.next(state)
if state.exclusive or state.count == 0 then return state.exclusive end
return shared().next(state)
end
function holders.put(state, entry)
entry.text, entry.isNew = nil, true
hash.need(state, entry.expiry)
if entry.mode == 's' then return shared().put(state, entry) end
state.exclusive = entry
end
function holders.update(state, entry, confirms)
entry.text, entry.isNew = nil, true
hash.need(state, entry.expiry)
if entry.mode == 's' then shared().update(state, entry, confirms) end
end
function holders.drop(state, entry)
if entry.mode == 's' then return shared().drop(state, entry) end
state.exclusive, state.isVacated = nil, true
end
local SILENT_PERIODS = 3
local SLICE = 64
local spare, endingPart, rarePart, serve = SLICE, nil, nil, nil
local function allows(state, done)
if done == 0 then return true end
if spare == 0 then
state.isBehind = true
return false
end
spare = spare - 1
return true
end
local function hasMore(state) return state.isBehind and state.waiting > 0 end
local function ending()
if not endingPart then
endingPart = (function()
local endings = {}
local function read(state, owner)
local text = try('GET', hash.companion(state, 't' .. owner))
if not text then return nil end
if type(text) == 'table' or find(text, '%D') ~= 17 then
refuse('the tombstone of an owner')
end
local keptUntil = tonumber(sub(text, 1, 16))
if keptUntil <= now then return nil end
local isRevoked = sub(text, 17, 17) == 'r'
return { keptUntil = keptUntil, reason = isRevoked and sub(text, 18) }
end
function endings.tombstone(state, owner)
return state.lastTombstone > now and read(state, owner) or nil
end
function endings.putTombstone(state, owner, keptUntil, reason)
local before = read(state, owner)
if before then
keptUntil, reason = math.max(keptUntil, before.keptUntil), reason or before.reason
end
local text = string.format('%016.0f', keptUntil) .. (reason and 'r' .. reason or '-')
write('SET', hash.companion(state, 't' .. owner), text, 'PXAT', hash.endMs(keptUntil))
if keptUntil > state.lastTombstone then
state.lastTombstone, state.isChanged = keptUntil, true
end
hash.need(state, keptUntil)
end
function endings.gone(state, owner)
local tombstone = endings.tombstone(state, owner)
if tombstone and tombstone.reason then return 'Ov' .. tombstone.reason end
return state.exclusive and 'Or' or 'Om'
end
function endings.putMark(state, token, keptUntil, meta)
state.mark = { token = token, keptUntil = keptUntil, meta = meta }
hash.set(state, 'm', string.format('%016.0f%016.0f', keptUntil, token) .. meta)
hash.need(state, keptUntil)
end
function endings.dropMark(state)
state.mark = nil
hash.set(state, 'm', false)
end
return endings
end)()
end
return endingPart
end
local function blockage(state)
local next = holders.next(state)
return next and ' ' .. entries.text(next) or ''
end
local function rare()
if not rarePart then
rarePart = (function()
local part = {}
local function text(number) return string.format('%.0f', number) end
local function eachHolder(state)
if state.exclusive then return { entries.complete(state.exclusive) } end
return state.count > 0 and shared().each(state) or {}
end
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
function part.endWait(state, entry)
queue.drop(state, entry)
pushNews(state, entry.client, 'm', entry.owner, state.mark.token, state.mark.meta)
end
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
end)()
end
return rarePart
end
local function fits(state, request)
if state.exclusive then return false end
if state.count == 0 then return request.weight <= request.limit end
return request.mode == 's' and shared().fits(state, request)
end
local function lapse(state, entry)
holders.drop(state, entry)
if entry.confirmed then return end
local id = entries.complete(entry).client
local client = state.waiting > 0 and queue.client(state, id)
local hasSpoken = client and client.gone - SILENT_PERIODS * client.touch >= entry.expiry
if not hasSpoken then queue.setSuspect(state, id) end
end
local function expire(state)
local next, done = holders.next(state), 0
while next and next.expiry <= now and allows(state, done) do
lapse(state, next)
next, done = holders.next(state), done + 1
end
if state.mark and state.mark.keptUntil <= now then ending().dropMark(state) end
if state.bound <= now and not state.isSwept then queue.dropSilent(state) end
end
local function holderOf(state, owner)
local entry = holders.of(state, owner)
if not entry or entry.expiry > now then return entry end
lapse(state, entry)
return nil
end
local function grant(state, entry, token, expiry, isConfirmed)
raise(token + entry.span - 1)
entry.token, entry.expiry, entry.granted, entry.confirmed = token, expiry, now, isConfirmed
holders.put(state, entry)
end
local function handOff(state, entry, token, toucher)
local expiry = now + entry.offer
local times = string.format(' %.0f %.0f %.0f %.0f ', token, entry.span, now, expiry)
local isHeard = push(entry.client, 'g' .. entry.owner .. times .. state.name)
if not isHeard and entry.client ~= toucher then
return queue.setSuspect(state, entry.client)
end
queue.drop(state, entry)
grant(state, entry, token, expiry, false)
state.next, state.isHandedOff = entry.place + 1, true
end
function serve(state, toucher)
if state.waiting == 0 or state.exclusive then return end
local mark, first, token, done = state.mark, queue.head(state), nextToken(), 0
while first and state.waiting > 0 and (mark or token and fits(state, first))
and allows(state, done) do
if mark then
rare().endWait(state, first)
else
handOff(state, first, token, toucher)
end
first, token, done = not state.exclusive and queue.head(state), nextToken(), done + 1
end
end
local function confirmHolder(state, entry)
if entry.confirmed then return end
entry.confirmed = true
entry.expiry = math.max(entry.expiry, now + entry.ttl)
holders.update(state, entry, true)
end
local function acquire(state, request, notAfter, seen, mayWait)
if now > notAfter then return 'L' end
local owner = request.owner
if state.lastTombstone > now and ending().tombstone(state, owner) then return 'E' end
if not learn(seen) then return 'Us' end
local mine = holderOf(state, owner)
if mine then
confirmHolder(state, entries.complete(mine))
return string.format('g%.0f %.0f %.0f', mine.token, mine.span, mine.expiry - now)
end
local mark = state.mark
if mark then
return string.format('M%.0f %.0f ', mark.token, mark.keptUntil - now) .. mark.meta
end
if queue.waiter(state, owner) then return 'Q-' .. blockage(state) end
local token = nextToken()
if not token then return 'Ul' end
if fits(state, request) then
local head, isUnknown = queue.head(state)
if not head and not isUnknown then
grant(state, request, token, now + request.ttl, true)
return string.format('G%.0f', token)
end
end
if not mayWait then return 'B' .. blockage(state) end
if LONGEST - request.offer < 0 or LONGEST - 4 * request.touch < 0 then return 'Ut' end
local ahead = state.waiting
queue.add(state, request, now + SILENT_PERIODS * request.touch)
return 'Q' .. ahead .. blockage(state)
end
local function renew(state, owner, ttl, heir)
local entry = holderOf(state, owner)
if not entry then return ending().gone(state, owner) end
entries.complete(entry)
if ttl then
local confirms = not entry.confirmed
entry.confirmed, entry.expiry = true, math.max(entry.expiry, now + ttl)
holders.update(state, entry, confirms)
else
confirmHolder(state, entry)
end
if heir then
entries.inherit(entry, heir)
holders.update(state, entry, false)
end
local waiting, remaining = state.waiting > 0 and 1 or 0, entry.expiry - now
return string.format('N%.0f %d %.0f %.0f', remaining, waiting, entry.token, entry.span)
end
local function release(state, owner, tombstoneUs, keepUs, keepMeta)
tombstoneUs = math.min(tombstoneUs, now + LONGEST)
if tombstoneUs > now then ending().putTombstone(state, owner, tombstoneUs) end
local held = holderOf(state, owner)
local queued = not held and queue.waiter(state, owner)
if queued then queue.drop(state, queued) end
if held then
holders.drop(state, held)
if keepUs then
local keptUntil = now + math.min(keepUs, LONGEST)
ending().putMark(state, entries.complete(held).token, keptUntil, keepMeta)
end
end
if held or queued then serve(state) end
local next, reply = holders.next(state), hasMore(state) and 's' or 'r'
if held then reply = string.upper(reply) end
if not next or next.confirmed then return reply end
return reply .. string.format('%.0f', math.max(0, next.expiry - now))
end
local function apply(state, name, operation, command)
if moving() then return '!TRYAGAIN ' .. moving(), state end
local request, owner, client, words, heir = nil, '', '', nil, nil
if operation == 'c' or operation == 'r' then
owner = sub(command, 2, -2)
elseif operation == 'n' then
owner = sub(command, 50, -2)
elseif operation == 'm' then
owner, heir = string.match(command, '^(%S+) (%S+)$', 50)
elseif operation == 'd' then
words = { string.match(command, '^d(%d+) (%d*) (%S+) (.*)$') }
owner = words[3]
elseif operation == 't' then
client = sub(command, 2)
elseif operation ~= 'i' and operation ~= 'v' then
if refusal() then return '!' .. refusal(), state end
request = entries.read({}, sub(command, 34))
if not request then return 'Ut', state end
owner, client = request.owner, request.client
end
state = state or hash.load(name, owner, client)
state.isBehind = false
expire(state)
if client ~= '' then queue.setAlive(state, client, SILENT_PERIODS) end
serve(state, operation == 't' and client)
if operation == 'c' then return renew(state, owner), state end
if operation == 'r' then return release(state, owner, 0), state end
if operation == 'd' then
local reply = release(state, owner, tonumber(words[1]), tonumber(words[2]), words[4])
return reply, state
end
if operation == 't' then return rare().touch(state, client), state end
if operation == 'i' then return rare().inspect(state), state end
if operation == 'v' then
local token, reason = string.match(command, '^v(%d+) (.*)$')
return rare().revoke(state, tonumber(token), reason), state
end
local notAfter = tonumber(sub(command, 2, 17))
local seen = tonumber(sub(command, 18, 33))
if request then
local mayWait = operation == string.upper(operation)
if not spanOf(command) then return 'Ut', state end
return acquire(state, request, notAfter, seen, mayWait), state
end
if not isTimed(command) or sub(command, 34, 49) > LONGEST then return 'Ut', state end
if now > notAfter then return 'L', state end
learn(seen)
return renew(state, owner, tonumber(sub(command, 34, 49)), heir), state
end
return apply, hash.save
end)()
end
command = command or terms.before .. owner .. terms.after
local done, answer, state = pcall(apply, states[name], name, operation, command)
reply, states[name], isGeneral[turn], isTerse = answer, state, true, false
if not done then fail(name, answer) end
end
replies[turn + 1], isTerse = reply, isTerse and #reply == 1
end
for name, state in pairs(states) do
local done, answer = true, nil
if not foreign[name] then done, answer = pcall(commit, state) end
if not done then fail(name, answer) end
end
for turn in pairs(isGeneral) do
local why = foreign[ARGV[turn]]
if why then replies[turn + 1] = '!' .. why end
end
if isTerse then replies = { nowText, table.concat(replies, '', 2) } end
return finish(replies)`;
