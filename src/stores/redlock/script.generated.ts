// Written by `npm run lua` from lua/*.lua: change those, and run it.
export const TERMS = {
  keptUntil: [0, 13],
  waiter: [13, 21],
  longest: [21, 34],
  state: [34, 35],
  id: [35, 51],
  ttl: [51],
} as const;
export const SCRIPT: string = `local call, sub, match, verb = redis.call, string.sub, string.match, ARGV[1]
local find, lock, ballot = string.find, KEYS[2], KEYS[3]
if verb == 'vote' then
local terms, record = ARGV[2], ARGV[3]
local kept = call('MGET', ballot, KEYS[1])
local raw, marker = kept[1], kept[2]
local isAdmitted = marker and sub(marker, 17, 46) == sub(terms, 22, 51)
if marker and not isAdmitted and sub(marker, 30, 46) == sub(terms, 35, 51)
then
local ttlMs = tonumber(sub(terms, 52))
isAdmitted = (tonumber(sub(marker, 17, 29)) or 0) >= ttlMs
or (tonumber(sub(marker, 116, 128)) or 0) >= ttlMs
and (tonumber(sub(marker, 129, 141)) or 0) > call('TIME')[1] * 1000 + 999
end
local token = sub(record, 1, 16)
local gap = isAdmitted and (tonumber(sub(marker, 1, 16)) or 0) - token
if IS_LONE and raw and sub(terms, 36, 51) == '0000000000000000' then
gap = call('TIME')[1] * 1000000 + 30000000 - token
end
if gap and gap >= 0 and gap < 60000000 then
local isAbove
if raw then
local stop = find(raw, '%D')
isAbove = raw < token and (not stop and #raw == 16
or stop == 17 and sub(raw, 17, 18) == ' H')
else
local floor, bound = tonumber(sub(marker, 87, 102)), (call('TIME')[1] - 86399) * 1000000
isAbove = floor and token - bound > 0 and token - floor > 0 and bound - floor < 30000000
end
if isAbove
and (IS_LONE or call('PUBSUB', 'NUMSUB', 'holdfast@/' .. sub(marker, 47, 86))[2] > 0)
and call('SET', lock, ARGV[4], 'PX', sub(terms, 52), 'NX') then
if raw and raw >= sub(record, 1, 7) then
call('SET', ballot, record, 'KEEPTTL')
return 1
end
local keptUntil = sub(terms, 1, 13)
if call('SET', ballot, record, 'PXAT', keptUntil, raw and 'XX' or 'NX') then
return 1
end
call('DEL', lock)
end
end
elseif verb == 'release' and #ARGV == 4 then
local start, kept = ARGV[2], call('MGET', lock, ballot)
local raw = kept[2]
if raw and kept[1] == sub(start, 20, -2) and find(raw, start, 1, true) == 1 then
call('DEL', lock)
call('SET', ballot, ARGV[3], 'KEEPTTL')
return 1
end
end
local function run(KEYS, ARGV)
local verb, node, lock, ballot = ARGV[1], KEYS[1], KEYS[2], KEYS[3]
local kept = call('MGET', lock, ballot, node)
local holder, raw, marker = kept[1], kept[2], kept[3]
local max = math.max
local SECOND, DAY, YEAR = 1000000, 86400000000, 31536000000000
local STRIDE = 10000000
local SILENCE = 1000
local MOST_DROPPED = 64
local UNKNOWN = '----------------'
local SLACK = 60000000
local PERIOD = 1000000000
local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)
local letter = not IS_LONE and string.find(ballot, ':', #node - 3, true)
local isNamed = IS_LONE or letter ~= nil
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
local function runId() return match(call('INFO', 'server'), 'run_id:(%x+)') end
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
.. (floor == UNKNOWN and '' or floor)
if #text < 142 or match(digits, '%D')
or not match(sub(text, 30, 86), '^[vn]%x+$') then
return nil, { 'X', node, 'string' }
end
local top = tonumber(sub(text, 1, 16))
if max(top, tonumber(floor) or 0) > nowUs + 10 * YEAR then return nil, { 'X', node, 'ahead' } end
return {
top = top, max = tonumber(sub(text, 17, 29)), id = sub(text, 31, 46),
run = sub(text, 47, 86), floor = tonumber(floor), from = tonumber(sub(text, 103, 115)),
long = tonumber(sub(text, 116, 128)), till = tonumber(sub(text, 129, 141)),
set = sub(text, 142),
}
end
local function writeMarker(known)
local floor = known.floor and string.format('%016.0f', known.floor) or UNKNOWN
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
if delayMs == 0 then return nil, known end
local uptime = match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
local waitMs = delayMs - uptime * 1000
if waitMs > 0 then return { 'Q', whole(waitMs) } end
return nil, known
end
if not known then return foreign or { 'U' } end
local isHeard = call('PUBSUB', 'NUMSUB', 'holdfast@/' .. known.run)[2] > 0
if not isHeard and known.run ~= runId() then return { 'U' } end
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
local function followed(known)
if IS_LONE then return nowUs - SECOND end
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
if not raw then return foreignType(ballot) end
local stored, kind, rest = match(raw, '^(%d+) ?([HWDRV]?) ?(.*)$')
local isOurs = stored and #stored == 16 and (kind ~= '' or rest == '')
and (kind ~= 'R' or match(rest, '^%d+ .*/'))
if not isOurs then return { 'X', ballot, 'string' } end
end
local function readBallot(known)
if raw then
local stored, kind, rest = match(raw, '^(%d+) ?(%a?) ?(.*)$')
return tonumber(stored), kind, rest, raw
end
return followed(known or readMarker()), '', '', nil
end
local function writeBallot(stored, text, leastMs)
local untilMs = math.floor((max(nowUs, stored) + DAY + SLACK + PERIOD) / 1000)
if leastMs then untilMs = max(untilMs, nowMs + leastMs) end
call('SET', ballot, whole(stored) .. text, 'PXAT', whole(untilMs))
end
local function raiseTop(known, token)
if IS_LONE or token <= known.top then return end
known.top = token + STRIDE
writeMarker(known)
end
local function isPlain(kind) return kind == '' or kind == 'H' end
local function enqueue(waiter, since, kind, text)
if not waiters or not waiter or waiter == '' then return 0 end
call('ZADD', waiters, 'NX', since, waiter)
call('PEXPIRE', waiters, 60000)
if text and isPlain(kind) then call('SETRANGE', ballot, #match(text, '^%d+'), ' W') end
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
for _ = 1, MOST_DROPPED do
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
local function held(stored, text, rank)
return { 'H', whole(stored), call('PTTL', lock), holder, text or '', rank, foreignQueue }
end
local function ahead(stored, known)
if stored > max(nowUs + YEAR, known and known.top or 0) then return { 'X', ballot, 'ahead' } end
end
local function absence()
if IS_LONE then return 0 end
local known = readMarker()
return known and known.run == runId() and known.from <= nowMs and 0 or -1
end
local function recordKind() return hasQueue and ' W' or ' H' end
local function prolong(owner, token, ttlMs, channel)
local head, voted, heard, tail =
match(raw or '', '^(%d+ [HW] (%S+) %d+ %d+ %d+ )(%S+)(.*)$')
if voted == owner and heard ~= channel then
call('SET', ballot, head .. channel .. tail, 'KEEPTTL')
end
local leftMs = call('PTTL', lock)
if leftMs < ttlMs then
call('PEXPIRE', lock, ttlMs)
leftMs = ttlMs
end
if head or not match(raw or '', '^%d+ D ') then
call('PEXPIREAT', ballot, whole(math.floor((max(nowUs, token) + 2 * DAY) / 1000)))
end
return { 'G', leftMs }
end
local function revocation(kind, rest, owner)
if kind ~= 'V' then return nil end
local revoked, reason = match(rest, '^(%S+) (.*)$')
if revoked == owner then return { 'V', reason } end
end
local function reserved(kind, rest, waiter)
if kind ~= 'R' then return nil end
local untilMs, woken = match(rest, '^(%d+) (.*)$')
local leftMs = tonumber(untilMs) - nowMs
if leftMs > 0 and woken ~= waiter then return leftMs end
end
local foreign = isNamed and foreignBallot()
if foreign then return foreign end
if verb == 'vote' then
local terms, record, owner, since = unpack(ARGV, 2)
local start, channel = match(record, '^(%d+) H %S+ %d+ %d+ %d+ (%S+)')
local token, ttlMs = tonumber(start), tonumber(sub(terms, 52))
local id = match(sub(terms, 14, 21), '%S+')
local waiter = id and channel .. '/' .. id
since = since or start
local refusal, known = admission(sub(terms, 36, 51), ttlMs)
refusal = refusal or foreignLock()
if refusal then return refusal end
local stored, kind, rest, text = readBallot(known)
refusal = ahead(stored, known)
if refusal then return refusal end
if holder and holder ~= owner then
return held(stored, text, enqueue(waiter, since, kind, text))
end
local leftMs = not holder and reserved(kind, rest, waiter)
if leftMs then
return { 'R', whole(stored), leftMs, enqueue(waiter, since, kind, text), foreignQueue }
end
if token <= stored then
if holder and token == stored then return { 'G', call('PTTL', lock) } end
return { 'L', whole(text and stored or IS_LONE and nowUs or stored) }
end
if token > max(nowUs + YEAR, known.top) then return { 'A', whole(nowUs) } end
call('SET', lock, owner, 'PX', ttlMs)
writeBallot(token, recordKind() .. sub(record, #start + 3))
raiseTop(known, token)
return 1
end
if verb == 'wait' then
local waiter, since = unpack(ARGV, 2)
local refusal = foreignLock()
if refusal then return refusal end
local known = readMarker()
local stored, kind, rest, text = readBallot(known)
refusal = ahead(stored, known)
if refusal then return refusal end
local rank = enqueue(waiter, since, kind, text)
if holder then return held(stored, text, rank) end
local leftMs = reserved(kind, rest, waiter)
if leftMs then return { 'R', whole(stored), leftMs, rank, foreignQueue } end
return { 'O', whole(stored), rank, foreignQueue }
end
if verb == 'leave' then
local waiter, reserveMs = unpack(ARGV, 2)
if waiters then call('ZREM', waiters, waiter) end
if foreignLock() then return 1 end
reserveMs = tonumber(reserveMs)
local stored, kind, rest = readBallot()
if kind == 'R' and match(rest, '^%d+ (.*)$') == waiter and not holder then
writeBallot(stored, reserveMs > 0 and wakeNext('', '', reserveMs) or ' W')
end
return 1
end
if verb == 'renew' then
local id, owner, token, span, ttlMs, channel = unpack(ARGV, 2)
token, ttlMs = tonumber(token), tonumber(ttlMs)
if holder ~= owner and (holder or foreignLock()) then return { 'H' } end
if holder then
local known
known, foreign = readMarker()
if foreign then return foreign end
local maxMs = known and longest(known) or 0
if maxMs < ttlMs then return { 'T', whole(maxMs) } end
return prolong(owner, token, ttlMs, channel)
end
local stored, kind, rest, text = readBallot()
local revoked = revocation(kind, rest, owner)
if revoked then return revoked end
if IS_LONE then return { 'N' } end
local refusal, known = admission(id, ttlMs)
if refusal then return refusal end
if text and stored > token then return { 'N' } end
call('SET', lock, owner, 'PX', ttlMs)
local record = table.concat({ owner, whole(token), span, whole(nowMs), channel, '' }, ' ')
writeBallot(max(stored, token), recordKind() .. ' ' .. record)
raiseTop(known, token)
return { 'G', ttlMs, 1 }
end
if verb == 'resume' then
local id, owner, token, ttlMs, channel = unpack(ARGV, 2)
ttlMs = tonumber(ttlMs)
if holder ~= owner and (holder or foreignLock()) then return { 'H' } end
local _, kind, rest = readBallot()
local revoked = revocation(kind, rest, owner)
if revoked then return revoked end
local refusal = admission(id, ttlMs)
if refusal then return refusal end
local voted, first = match(rest, '^(%S+) (%d+) %d+ %d+ %S+ .')
if not holder or voted ~= owner or first ~= token then return { 'N' } end
return prolong(owner, tonumber(token), ttlMs, channel)
end
if verb == 'release' then
local start, _, reserveMs, keepMs, meta, waiter, since = unpack(ARGV, 2)
local token, owner = match(start, '^(%d+) H (%S+) $')
token = tonumber(token)
keepMs = tonumber(keepMs or 0)
if keepMs > 0 and holder == 'done:' .. owner then return 1 end
local isHeld = holder == owner
if isHeld then call('DEL', lock) end
local stored, kind, rest = readBallot()
enqueue(waiter, since)
if waiter and isPlain(kind) then kind = 'W' end
local text = kind == '' and '' or ' ' .. kind .. ' ' .. rest
local leastMs = kind == 'D' and not isHeld and call('PTTL', ballot) or nil
if isHeld and keepMs > 0 then
leastMs = keepMs + DAY / 1000
local value = 'done:' .. owner
call('SET', lock, value, 'PX', keepMs)
local record = { value, whole(token), '01', whole(nowMs), '-', meta }
text = ' D ' .. table.concat(record, ' ')
if waiters then
for _, other in ipairs(call('ZRANGE', waiters, 0, 255)) do notify('w', other) end
call('DEL', waiters)
end
elseif isHeld then
text = wakeNext(kind, rest, tonumber(reserveMs))
end
if token > max(nowUs + YEAR, stored) then token = 0 end
writeBallot(max(stored, token + 1), text, leastMs)
return isHeld and 1 or absence()
end
if verb == 'revoke' then
local token, reason = unpack(ARGV, 2)
local stored, kind, rest = readBallot()
local owner, first, span, _, channel = match(rest, '^(%S+) (%d+) (%d+) (%d+) (%S+)')
local turn = kind ~= 'R' and kind ~= 'V' and first and token - first
if not turn or turn < 0 or turn - span >= 0 or holder ~= owner then
return absence()
end
call('DEL', lock)
local word = 'x ' .. owner .. ' ' .. first .. ' ' .. reason
if match(channel, '^holdfast@') then call('PUBLISH', channel, word) end
wakeNext('', '', 0)
writeBallot(max(stored, tonumber(first) + 1), ' V ' .. owner .. ' ' .. reason)
return 1
end
if verb == 'look' then
local queue = waiters and call('ZRANGE', waiters, 0, -1, 'WITHSCORES') or {}
foreign = foreignLock()
local value = foreign and 'a ' .. foreign[3] or holder or ''
return { call('PTTL', lock), value, raw or '', queue, foreignQueue }
end
local known
known, foreign = readMarker()
if foreign then return foreign end
if verb == 'survey' then
local uptime = match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
local answer = { runId(), uptime, whole(nowUs) }
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
if runId() ~= run then return 0 end
maxMs = tonumber(maxMs)
local over = nowMs + tonumber(restMs)
if known and known.run == run and known.set ~= set and how ~= 'now' then return 0 end
local isAwake = known and known.from <= nowMs and known.floor
if known and known.run == run and known.set == set and (how ~= 'now' or isAwake) then
local more = max(0, maxMs - known.max)
if known.from > nowMs then known.from = max(known.from + more, over) end
known.max = known.max + more
writeMarker(known)
return 1
end
local uptime = tonumber(match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
local since = how == 'join' and nowMs or nowMs - uptime * 1000
local from = how == 'now' and 0 or max(since + maxMs, over)
local least = known and known.floor or 0
local top = max(least, known and known.top or 0)
floor = tonumber(floor)
if floor then
floor = max(least, floor, nowUs)
top = max(top, floor)
end
local long, till = known and known.long or 0, known and known.till or 0
writeMarker({
run = run, set = set, from = from, max = maxMs, long = long, till = till, floor = floor,
top = top,
})
return 1
end
if verb == 'admit' then
local run, floor = unpack(ARGV, 2)
if not known or runId() ~= run or known.run ~= run or known.floor then return 0 end
if known.from > nowMs then return 0 end
known.floor = max(tonumber(floor), known.top)
known.top = known.floor
writeMarker(known)
return 1
end
if verb == 'raise' then
local set, ttlMs, forMs = unpack(ARGV, 2)
if not known or known.run ~= runId() or known.set ~= set then return 0 end
ttlMs = tonumber(ttlMs)
if ttlMs <= known.max then return 1 end
if known.till + known.long <= nowMs then known.long, known.till = 0, 0 end
known.long = max(known.long, ttlMs)
known.till = max(known.till, nowMs + forMs)
writeMarker(known)
return 1
end
end
if ARGV[1] ~= 'renew' then return run(KEYS, ARGV) end
local answers = {}
for at = 1, (#KEYS - 1) / 2 do
local owner, token, span, ttlMs = unpack(ARGV, 4 * at, 4 * at + 3)
local isDone, answer = pcall(run, { KEYS[1], KEYS[2 * at], KEYS[2 * at + 1] },
{ 'renew', ARGV[2], owner, token, span, ttlMs, ARGV[3] })
if not isDone then
local said = type(answer) == 'table' and answer.err or answer
answer = { 'E', tostring(said) .. ' (user_script)' }
end
answers[at] = answer
end
return answers`;
