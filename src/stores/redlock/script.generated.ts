// Written by `npm run lua` from lua/*.lua: change those, and run it.
const shared = `local function open(keys, kept)
local call, sub, match, max = redis.call, string.sub, string.match, math.max
local node, lock, ballot = keys[1], keys[2], keys[3]
kept = kept or call('MGET', lock, ballot, node)
local holder, raw, marker = kept[1], kept[2], kept[3]
local DAY, YEAR = 86400000000, 31536000000000
local STRIDE = 10000000
local SILENCE = 1000
local MAX_DROPPED = 64
local UNKNOWN_FLOOR = '----------------'
local SLACK = 60000000
local PERIOD = 1000000000
local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)
local letter = not IS_LONE and string.find(ballot, ':', #node - 3, true)
local waiters = letter and sub(ballot, 1, letter) .. 'w' .. sub(ballot, letter + 2)
if IS_LONE then waiters = node end
local function waiterOf(member) return match(member, '^(holdfast@.*)/(.*)$') end
local function isWaiter(at) return waiterOf(call('ZRANGE', waiters, at, at)[1]) end
local queueType = waiters and call('TYPE', waiters).ok
local hasQueue = queueType == 'zset' and isWaiter(0) and isWaiter(-1)
local foreignQueue
if waiters and not hasQueue and queueType ~= 'none' then
foreignQueue = { 'X', waiters, queueType }
waiters = nil
end
local function whole(number) return string.format('%.0f', number) end
local function server(field) return match(call('INFO', 'server'), field .. ':(%x+)') end
local function uptimeMs() return server('uptime_in_seconds') * 1000 end
local function foreignType(key)
local kind = call('TYPE', key).ok
if kind ~= 'none' then return { 'X', key, kind } end
end
local function readMarker()
if IS_LONE then return { top = 0, max = math.huge, long = 0, till = 0 } end
local text = marker
if not text then return nil, foreignType(node) end
local floor = sub(text, 87, 102)
local digits = sub(text, 1, 29) .. sub(text, 103, 141)
.. (floor == UNKNOWN_FLOOR and '' or floor)
if #text < 142 or match(digits, '%D') or not match(sub(text, 30, 86), '^[vn]%x+$') then
return nil, { 'X', node, 'string' }
end
local top = tonumber(sub(text, 1, 16))
local highest = max(top, tonumber(floor) or 0)
if highest > nowUs + 10 * YEAR then return nil, { 'X', node, 'ahead' } end
return {
top = top, max = tonumber(sub(text, 17, 29)), id = sub(text, 31, 46),
run = sub(text, 47, 86), floor = tonumber(floor), from = tonumber(sub(text, 103, 115)),
long = tonumber(sub(text, 116, 128)), till = tonumber(sub(text, 129, 141)),
set = sub(text, 142),
}
end
local function writeMarker(known)
local floor = known.floor and string.format('%016.0f', known.floor) or UNKNOWN_FLOOR
local state = known.floor and known.from == 0 and 'v' or 'n'
local id = sub(redis.sha1hex(known.set), 1, 16)
call('SET', node, string.format('%016.0f%013.0f', known.top, known.max) .. state .. id
.. known.run .. floor
.. string.format('%013.0f%013.0f%013.0f', known.from, known.long, known.till) .. known.set)
end
local function longest(known)
return nowMs < known.till and max(known.max, known.long) or known.max
end
local function admission(id, ttlMs)
local known, foreign = readMarker()
if IS_LONE then
local delayMs = tonumber(id)
local waitMs = delayMs > 0 and delayMs - uptimeMs() or 0
if waitMs > 0 then return { 'Q', whole(waitMs) } end
return nil, known
end
if not known then return foreign or { 'U' } end
local isHeard = call('PUBSUB', 'NUMSUB', 'holdfast@/' .. known.run)[2] > 0
if not isHeard and known.run ~= server('run_id') then return { 'U' } end
if known.id ~= id then return { 'S', known.set } end
local waitMs = known.from - nowMs
if waitMs > 0 then return { 'Q', whole(waitMs) } end
if not known.floor then return { 'F' } end
if longest(known) < ttlMs then return { 'T', whole(longest(known)) } end
if known.from ~= 0 then
known.from = 0
writeMarker(known)
end
return nil, known
end
local function floorOf(known)
if IS_LONE then return nowUs - 1000000 end
local bound = nowUs - DAY
if not known or not known.floor then return bound end
if bound > known.floor + SLACK / 2 then
known.floor = bound
writeMarker(known)
end
return max(bound, known.floor)
end
local function foreignLock()
if not holder then return foreignType(lock) end
end
local function foreignBallot()
if not letter and not IS_LONE then return nil end
if not raw then return foreignType(ballot) end
local stored, kind, rest = match(raw, '^(%d+) ?([HWDRV]?) ?(.*)$')
local isOurs = stored and #stored == 16 and (kind ~= '' or rest == '')
and (kind ~= 'R' or match(rest, '^%d+ .*/'))
if not isOurs then return { 'X', ballot, 'string' } end
end
local function readBallot(known)
if not raw then return floorOf(known or readMarker()), '', '' end
local stored, kind, rest = match(raw, '^(%d+) ?(%a?) ?(.*)$')
return tonumber(stored), kind, rest
end
local function keptUntilMs(stored, leastMs)
local untilMs = math.floor((max(nowUs, stored) + DAY + SLACK + PERIOD) / 1000)
return leastMs and max(untilMs, nowMs + leastMs) or untilMs
end
local function writeBallot(stored, text, leastMs)
call('SET', ballot, whole(stored) .. text, 'PXAT', whole(keptUntilMs(stored, leastMs)))
end
local function raiseTop(known, token)
if IS_LONE or token <= known.top then return end
known.top = token + STRIDE
writeMarker(known)
end
local function ahead(stored, known)
if stored > max(nowUs + YEAR, known and known.top or 0) then return { 'X', ballot, 'ahead' } end
end
local function isPlain(kind) return kind == '' or kind == 'H' end
local function recordKind() return hasQueue and ' W' or ' H' end
local function enqueue(waiter, since, kind)
if not waiters or not waiter or waiter == '' then return 0 end
call('ZADD', waiters, 'NX', since, waiter)
call('PEXPIRE', waiters, 60000)
if raw and kind and isPlain(kind) then call('SETRANGE', ballot, 16, ' W') end
return call('ZRANK', waiters, waiter)
end
local function notify(word, waiter)
local channel, id = waiterOf(waiter)
local listeners = channel and call('PUBLISH', channel, word .. ' ' .. id) or 0
return channel and IS_SPREAD and 1 or listeners
end
local function wakeNext(kind, rest, reserveMs)
if not waiters then return '' end
local untilMs, last = match(rest, '^(%d+) (.*)$')
if kind ~= 'R' or tonumber(untilMs) > nowMs then last = nil end
local silent
if last then
local channel = match(last, '^(.*)/')
local isSilent = tonumber(untilMs) + SILENCE < nowMs
if isSilent then silent = channel end
notify('e', isSilent and channel .. '/' or last)
call('ZREM', waiters, last)
end
for _ = 1, MAX_DROPPED do
local first = call('ZRANGE', waiters, 0, 1)
local waiter, second = first[1], first[2]
if not waiter or not waiterOf(waiter) then return '' end
if match(waiter, '^(.*)/') ~= silent and notify('w', waiter) > 0 then
if second then notify('s', second) end
return ' R ' .. whole(nowMs + reserveMs) .. ' ' .. waiter
end
call('ZREM', waiters, waiter)
end
return ' W'
end
local function taken(owner, waiter, since, stored, kind, rest)
if holder and holder ~= owner then
local rank = enqueue(waiter, since, kind)
return { 'H', whole(stored), call('PTTL', lock), holder, raw or '', rank, foreignQueue }
end
if holder or kind ~= 'R' then return nil end
local untilMs, woken = match(rest, '^(%d+) (.*)$')
local leftMs = tonumber(untilMs) - nowMs
if leftMs <= 0 or woken == waiter then return nil end
return { 'R', whole(stored), leftMs, enqueue(waiter, since, kind), foreignQueue }
end
local function absence()
if IS_LONE then return 0 end
local known = readMarker()
return known and known.run == server('run_id') and known.from <= nowMs and 0 or -1
end
return {
holder = holder, raw = raw, nowUs = nowUs, nowMs = nowMs, DAY = DAY, YEAR = YEAR,
waiters = waiters, foreignQueue = foreignQueue,
whole = whole, server = server, uptimeMs = uptimeMs, notify = notify,
readMarker = readMarker, writeMarker = writeMarker, longest = longest, admission = admission,
foreignLock = foreignLock, foreignBallot = foreignBallot, readBallot = readBallot,
keptUntilMs = keptUntilMs, writeBallot = writeBallot, raiseTop = raiseTop, ahead = ahead,
isPlain = isPlain, recordKind = recordKind, enqueue = enqueue, wakeNext = wakeNext,
taken = taken, absence = absence,
}
end`;
const vote = `local call, sub, find = redis.call, string.sub, string.find
local terms, record, lock, ballot = ARGV[1], ARGV[2], KEYS[2], KEYS[3]
local kept = call('MGET', lock, ballot, KEYS[1])
local holder, raw, marker = kept[1], kept[2], kept[3]
local ttlMs, token = sub(terms, 31), sub(record, 1, 16)
local owner = sub(record, 20, find(record, ' ', 20, true) - 1)
local isOpen, isAdmitted, nowUs = false, false, nil
if IS_LONE then
local time = not holder and sub(terms, 15, 30) == '0000000000000000' and call('TIME')
nowUs = time and time[1] * 1000000 + time[2]
isAdmitted = time and token - nowUs < 31536000000000
elseif marker and not holder and sub(marker, 17, 46) == sub(terms, 1, 30) then
local gap = (tonumber(sub(marker, 1, 16)) or 0) - token
isAdmitted = gap >= 0 and gap < 60000000
end
if isAdmitted and raw then
local stop = find(raw, '%D')
isOpen = raw < token
and (not stop and #raw == 16 or stop == 17 and sub(raw, 17, 18) == ' H')
elseif isAdmitted and IS_LONE then
isOpen = token - nowUs > -1000000
elseif isAdmitted then
local floor, bound = tonumber(sub(marker, 87, 102)), (call('TIME')[1] - 86399) * 1000000
isOpen = floor and token - bound > 0 and token - floor > 0 and bound - floor < 30000000
end
isOpen = isOpen
and (IS_LONE or call('PUBSUB', 'NUMSUB', 'holdfast@/' .. sub(marker, 47, 86))[2] > 0)
local node, known, keptUntilMs
if not isOpen then
node = open(KEYS, kept)
local refusal = node.foreignBallot()
if refusal then return refusal end
refusal, known = node.admission(sub(terms, 15, 30), tonumber(ttlMs))
refusal = refusal or node.foreignLock()
if refusal then return refusal end
local stored, kind, rest = node.readBallot(known)
local id, channel = ARGV[3], string.match(record, '^%S+ H %S+ %d+ %d+ %d+ (%S+)')
refusal = node.ahead(stored, known)
or node.taken(owner, id and channel .. '/' .. id, ARGV[4] or token, stored, kind, rest)
if refusal then return refusal end
local number = tonumber(token)
if number <= stored then
if holder and number == stored then return { 'G', call('PTTL', lock) } end
return { 'L', node.whole(not raw and IS_LONE and node.nowUs or stored) }
end
if number > math.max(node.nowUs + node.YEAR, known.top) then
return { 'A', node.whole(node.nowUs) }
end
keptUntilMs = node.whole(node.keptUntilMs(number))
record = token .. node.recordKind() .. sub(record, 19)
end
local isSet = call('SET', lock, owner, 'PX', ttlMs, holder and 'XX' or 'NX')
if isSet and isOpen and raw and raw >= sub(record, 1, 7) then
call('SET', ballot, record, 'KEEPTTL')
return 1
end
keptUntilMs = keptUntilMs or sub(token, 1, 13) + 87460001
if isSet and call('SET', ballot, record, 'PXAT', keptUntilMs, raw and 'XX' or 'NX') then
if node then node.raiseTop(known, tonumber(token)) end
return 1
end
if isSet then call('DEL', lock) end
local foreign = not raw and call('TYPE', ballot).ok or 'none'
if foreign ~= 'none' then return { 'X', ballot, foreign } end
return { 'X', lock, call('TYPE', lock).ok }`;
const release = `local call, sub = redis.call, string.sub
local start, lock, ballot = ARGV[1], KEYS[2], KEYS[3]
local owner = sub(start, 20, -2)
local isPlain = #ARGV == 3
local kept = call('MGET', lock, ballot, KEYS[1])
if isPlain and kept[1] == owner and kept[2] and string.find(kept[2], start, 1, true) == 1 then
call('DEL', lock)
call('SET', ballot, ARGV[2], 'KEEPTTL')
return 1
end
local node = open(KEYS, kept)
local foreign = node.foreignBallot()
if foreign then return foreign end
local token, keepMs = tonumber(sub(start, 1, 16)), tonumber(ARGV[4] or 0)
local nowUs, nowMs, whole = node.nowUs, node.nowMs, node.whole
if keepMs > 0 and node.holder == 'done:' .. owner then return 1 end
local isHeld = node.holder == owner
if isHeld then call('DEL', lock) end
local stored, kind, rest = node.readBallot()
node.enqueue(ARGV[6], ARGV[7])
if ARGV[6] and node.isPlain(kind) then kind = 'W' end
local text = kind == '' and '' or ' ' .. kind .. ' ' .. rest
local leastMs = kind == 'D' and not isHeld and call('PTTL', ballot) or nil
if isHeld and keepMs > 0 then
leastMs = keepMs + node.DAY / 1000
local value = 'done:' .. owner
call('SET', lock, value, 'PX', keepMs)
text = ' D ' .. table.concat({ value, whole(token), '01', whole(nowMs), '-', ARGV[5] }, ' ')
if node.waiters then
for _, other in ipairs(call('ZRANGE', node.waiters, 0, 255)) do node.notify('w', other) end
call('DEL', node.waiters)
end
elseif isHeld then
text = node.wakeNext(kind, rest, tonumber(ARGV[3]))
end
if token > math.max(nowUs + node.YEAR, stored) then token = 0 end
node.writeBallot(math.max(stored, token + 1), text, leastMs)
return isHeld and 1 or node.absence()`;
const node = `local call, match, max = redis.call, string.match, math.max
local verb = ARGV[1]
local function prolong(node, lock, ballot, owner, token, ttlMs, channel)
local raw, whole = node.raw or '', node.whole
local head, voted, heard, tail = match(raw, '^(%d+ [HW] (%S+) %d+ %d+ %d+ )(%S+)(.*)$')
if voted == owner and heard ~= channel then
call('SET', ballot, head .. channel .. tail, 'KEEPTTL')
end
local leftMs = call('PTTL', lock)
if leftMs < ttlMs then
call('PEXPIRE', lock, ttlMs)
leftMs = ttlMs
end
if head or not match(raw, '^%d+ D ') then
local untilUs = max(node.nowUs, token) + 2 * node.DAY
call('PEXPIREAT', ballot, whole(math.floor(untilUs / 1000)))
end
return { 'G', leftMs }
end
local function revocation(kind, rest, owner)
if kind ~= 'V' then return nil end
local revoked, reason = match(rest, '^(%S+) (.*)$')
if revoked == owner then return { 'V', reason } end
end
local function renew(keys, id, owner, token, span, ttlMs, channel)
local node = open(keys)
local foreign = node.foreignBallot()
if foreign then return foreign end
local _, lock, ballot = unpack(keys)
token, ttlMs = tonumber(token), tonumber(ttlMs)
if node.holder ~= owner and (node.holder or node.foreignLock()) then return { 'H' } end
if node.holder then
local known, refusal = node.readMarker()
if refusal then return refusal end
local maxMs = known and node.longest(known) or 0
if maxMs < ttlMs then return { 'T', node.whole(maxMs) } end
return prolong(node, lock, ballot, owner, token, ttlMs, channel)
end
local stored, kind, rest = node.readBallot()
local revoked = revocation(kind, rest, owner)
if revoked then return revoked end
if IS_LONE then return { 'N' } end
local refusal, known = node.admission(id, ttlMs)
if refusal then return refusal end
if node.raw and stored > token then return { 'N' } end
call('SET', lock, owner, 'PX', ttlMs)
local record = { owner, node.whole(token), span, node.whole(node.nowMs), channel, '' }
node.writeBallot(max(stored, token), node.recordKind() .. ' ' .. table.concat(record, ' '))
node.raiseTop(known, token)
return { 'G', ttlMs, 1 }
end
if verb == 'renew' then
local answers = {}
for at = 1, (#KEYS - 1) / 2 do
local owner, token, span, ttlMs = unpack(ARGV, 4 * at, 4 * at + 3)
local isDone, answer = pcall(renew, { KEYS[1], KEYS[2 * at], KEYS[2 * at + 1] },
ARGV[2], owner, token, span, ttlMs, ARGV[3])
if not isDone then
local said = type(answer) == 'table' and answer.err or answer
answer = { 'E', tostring(said) .. ' (user_script)' }
end
answers[at] = answer
end
return answers
end
local _, lock, ballot = unpack(KEYS)
local node = open(KEYS)
local nowMs, whole, readBallot = node.nowMs, node.whole, node.readBallot
local holder, waiters = node.holder, node.waiters
local foreign = node.foreignBallot()
if foreign then return foreign end
if verb == 'wait' then
local waiter, since = unpack(ARGV, 2)
local refusal = node.foreignLock()
if refusal then return refusal end
local known = node.readMarker()
local stored, kind, rest = readBallot(known)
refusal = node.ahead(stored, known) or node.taken(nil, waiter, since, stored, kind, rest)
if refusal then return refusal end
return { 'O', whole(stored), node.enqueue(waiter, since, kind), node.foreignQueue }
end
if verb == 'leave' then
local waiter, reserveMs = unpack(ARGV, 2)
if waiters then call('ZREM', waiters, waiter) end
if node.foreignLock() then return 1 end
reserveMs = tonumber(reserveMs)
local stored, kind, rest = readBallot()
if kind == 'R' and match(rest, '^%d+ (.*)$') == waiter and not holder then
node.writeBallot(stored, reserveMs > 0 and node.wakeNext('', '', reserveMs) or ' W')
end
return 1
end
if verb == 'resume' then
local id, owner, token, ttlMs, channel = unpack(ARGV, 2)
ttlMs = tonumber(ttlMs)
if holder ~= owner and (holder or node.foreignLock()) then return { 'H' } end
local _, kind, rest = readBallot()
local revoked = revocation(kind, rest, owner)
if revoked then return revoked end
local refusal = node.admission(id, ttlMs)
if refusal then return refusal end
local voted, first = match(rest, '^(%S+) (%d+) %d+ %d+ %S+ .')
if not holder or voted ~= owner or first ~= token then return { 'N' } end
return prolong(node, lock, ballot, owner, tonumber(token), ttlMs, channel)
end
if verb == 'revoke' then
local token, reason = unpack(ARGV, 2)
local stored, kind, rest = readBallot()
local owner, first, span, _, channel = match(rest, '^(%S+) (%d+) (%d+) (%d+) (%S+)')
local turn = kind ~= 'R' and kind ~= 'V' and first and token - first
if not turn or turn < 0 or turn - span >= 0 or holder ~= owner then
return node.absence()
end
call('DEL', lock)
local word = 'x ' .. owner .. ' ' .. first .. ' ' .. reason
if match(channel, '^holdfast@') then call('PUBLISH', channel, word) end
node.wakeNext('', '', 0)
node.writeBallot(max(stored, tonumber(first) + 1), ' V ' .. owner .. ' ' .. reason)
return 1
end
if verb == 'look' then
local queue = waiters and call('ZRANGE', waiters, 0, -1, 'WITHSCORES') or {}
foreign = node.foreignLock()
local value = foreign and 'a ' .. foreign[3] or holder or ''
return { call('PTTL', lock), value, node.raw or '', queue, node.foreignQueue }
end
local known
known, foreign = node.readMarker()
if foreign then return foreign end
if verb == 'survey' then
local answer = { node.server('run_id'), whole(node.uptimeMs() / 1000), whole(node.nowUs) }
if IS_LONE or not known then return answer end
local floor = known.floor and whole(known.floor) or ''
for _, one in ipairs({ known.run, known.set, whole(known.from), whole(known.max), floor,
whole(known.top), whole(known.long), whole(known.till) }) do
table.insert(answer, one)
end
return answer
end
if verb == 'mark' then
local run, set, how, maxMs, restMs, floor = unpack(ARGV, 2)
if node.server('run_id') ~= run then return 0 end
maxMs = tonumber(maxMs)
local over = nowMs + tonumber(restMs)
if known and known.run == run and known.set ~= set and how ~= 'now' then return 0 end
local isAwake = known and known.from <= nowMs and known.floor
if known and known.run == run and known.set == set and (how ~= 'now' or isAwake) then
local more = max(0, maxMs - known.max)
if known.from > nowMs then known.from = max(known.from + more, over) end
known.max = known.max + more
node.writeMarker(known)
return 1
end
local since = how == 'join' and nowMs or nowMs - node.uptimeMs()
local from = how == 'now' and 0 or max(since + maxMs, over)
local least = known and known.floor or 0
local top = max(least, known and known.top or 0)
floor = tonumber(floor)
if floor then
floor = max(least, floor, node.nowUs)
top = max(top, floor)
end
local long, till = known and known.long or 0, known and known.till or 0
node.writeMarker({
run = run, set = set, from = from, max = maxMs, long = long, till = till, floor = floor,
top = top,
})
return 1
end
if verb == 'admit' then
local run, floor = unpack(ARGV, 2)
if not known or node.server('run_id') ~= run or known.run ~= run or known.floor then return 0 end
if known.from > nowMs then return 0 end
known.floor = max(tonumber(floor), known.top)
known.top = known.floor
node.writeMarker(known)
return 1
end
if verb == 'raise' then
local set, ttlMs, forMs = unpack(ARGV, 2)
if not known or known.run ~= node.server('run_id') or known.set ~= set then return 0 end
ttlMs = tonumber(ttlMs)
if ttlMs <= known.max then return 1 end
if known.till + known.long <= nowMs then known.long, known.till = 0, 0 end
known.long = max(known.long, ttlMs)
known.till = max(known.till, nowMs + forMs)
node.writeMarker(known)
return 1
end`;
export const VOTE: string = `${shared}
${vote}`;
export const RELEASE: string = `${shared}
${release}`;
export const NODE: string = `${shared}
${node}`;
