// Written by scripts/embed-lua.mjs from lua/*.lua: change those, and run it.
export const SCRIPT: string = `local call, sub, verb = redis.call, string.sub, ARGV[1]
local node, lock, ballot, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local marker, isAlive, holder, raw
if verb == 'vote' then
  local owner, terms, record = ARGV[2], ARGV[3], ARGV[4]
  local token, ttlMs = sub(record, 1, 16), sub(terms, 11)
  marker = call('HMGET', node, 'run', 'set', 'from', 'max', 'floor', 'top')
  local floor, top = marker[5], marker[6]
  local channel = string.match(record, '^%S+', #owner + 55)
  isAlive = top and call('PUBSUB', 'NUMSUB', channel .. '/' .. marker[1])[2] > 0
  holder, raw = call('GET', lock), call('GET', ballot)
  if isAlive and not holder and sub(record, 17, 17) == ' ' and #top == 16 and token <= top
    and top - token < 60000000 and marker[2] == ARGV[5] and marker[3] == '0' and floor ~= ''
    and marker[4] - ttlMs >= 0 then
    local isAbove
    if raw then
      local kind = sub(raw, 17, 18)
      isAbove = (kind == '' or kind == ' H') and sub(raw, 1, 16) < token
    else
      local bound = (call('TIME')[1] - 86399) * 1000000
      isAbove = token - bound > 0 and token - floor > 0 and bound - floor < 30000000
    end
    if isAbove then
      call('SET', lock, owner, 'PX', ttlMs)
      call('SET', ballot, record, 'EXAT', sub(terms, 1, 10))
      return 'G'
    end
  end
elseif verb == 'release' then
  holder, raw = call('GET', lock), call('GET', ballot)
  if #ARGV == 5 and holder == ARGV[2] and raw and sub(raw, 1, 19) == ARGV[3]
    and call('EXISTS', waiters) == 0 then
    call('DEL', lock)
    call('SET', ballot, ARGV[4], 'KEEPTTL')
    return 1
  end
end
local match, max = string.match, math.max
local DAY, YEAR = 86400000000, 31536000000000
local STRIDE = 10000000
local SILENCE = 1000
local SLACK = 60000000
local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)
local function whole(number) return string.format('%.0f', number) end
local function runId() return match(call('INFO', 'server'), 'run_id:(%x+)') end
local function admission(set, ttlMs)
  local fields = marker or call('HMGET', node, 'run', 'set', 'from', 'max', 'floor', 'top')
  if not fields[1] or not isAlive and fields[1] ~= runId() then return { 'U' } end
  if fields[2] ~= set then return { 'S', fields[2] } end
  local waitMs = tonumber(fields[3]) - nowMs
  if waitMs > 0 then return { 'Q', whole(waitMs) } end
  if fields[5] == '' then return { 'F' } end
  if tonumber(fields[4]) < ttlMs then return { 'T', fields[4] } end
  if fields[3] ~= '0' then call('HSET', node, 'from', '0') end
  return nil, tonumber(fields[5]), tonumber(fields[6])
end
local function followed(floor)
  local bound = nowUs - DAY
  if not floor then return bound end
  if bound > floor + SLACK / 2 then call('HSET', node, 'floor', whole(bound)) end
  return max(bound, floor)
end
local function load(floor)
  local text = raw
  if text == nil then text = call('GET', ballot) end
  if text then
    local stored, kind, rest = match(text, '^(%d+) ?(%a?) ?(.*)$')
    return tonumber(stored), kind, rest, text
  end
  floor = floor or tonumber(call('HMGET', node, 'floor')[1] or '')
  return followed(floor), '', '', nil
end
local function keep(stored, text)
  local untilMs = math.floor((max(nowUs, stored) + DAY + SLACK) / 1000)
  call('SET', ballot, whole(stored) .. text, 'PXAT', whole(untilMs))
end
local function raiseTop(top, token)
  if token > top then call('HSET', node, 'top', whole(token + STRIDE)) end
end
local function stand(waiter, since)
  if not waiter or waiter == '' then return 0 end
  call('ZADD', waiters, 'NX', since, waiter)
  call('PEXPIRE', waiters, 60000)
  return call('ZRANK', waiters, waiter)
end
local function pick(kind, rest, reserveMs)
  local untilMs, last = match(rest, '^(%d+) (.*)$')
  if kind ~= 'R' or tonumber(untilMs) > nowMs then last = nil end
  local silent
  if last then
    local channel, id = match(last, '^(.*)/(.*)$')
    if tonumber(untilMs) + SILENCE < nowMs then silent, id = channel, '' end
    call('PUBLISH', channel, 'e ' .. id)
    call('ZREM', waiters, last)
  end
  while true do
    local line = call('ZRANGE', waiters, 0, 1)
    local waiter, second = line[1], line[2]
    if not waiter then return '' end
    local channel, id = match(waiter, '^(.*)/(.*)$')
    if channel ~= silent and call('PUBLISH', channel, 'w ' .. id) > 0 then
      if second then
        channel, id = match(second, '^(.*)/(.*)$')
        call('PUBLISH', channel, 's ' .. id)
      end
      return ' R ' .. whole(nowMs + reserveMs) .. ' ' .. waiter
    end
    call('ZREM', waiters, waiter)
  end
end
local function inTheWay(value, stored, text, rank)
  return { 'H', whole(stored), call('PTTL', lock), value, text or '', rank }
end
local function absence()
  local fields = call('HMGET', node, 'run', 'from')
  local isSure = fields[1] and fields[1] == runId() and tonumber(fields[2]) <= nowMs
  return isSure and 0 or -1
end
local function reserved(kind, rest, waiter)
  if kind ~= 'R' then return nil end
  local untilMs, who = match(rest, '^(%d+) (.*)$')
  local leftMs = tonumber(untilMs) - nowMs
  if leftMs > 0 and who ~= waiter then return leftMs end
end
if verb == 'vote' then
  local owner, terms, record, set, waiter, since = unpack(ARGV, 2)
  local token, ttlMs = tonumber(match(record, '^%d+')), tonumber(sub(terms, 11))
  local refusal, floor, top = admission(set, ttlMs)
  if refusal then return refusal end
  local stored, kind, rest, text = load(floor)
  if holder and holder ~= owner then
    return inTheWay(holder, stored, text, stand(waiter, since))
  end
  local leftMs = not holder and reserved(kind, rest, waiter)
  if leftMs then
    return { 'R', whole(stored), leftMs, stand(waiter, since) }
  end
  if token <= stored then
    if holder and token == stored then return { 'G', call('PTTL', lock) } end
    return { 'L', whole(stored) }
  end
  if token > nowUs + YEAR then return { 'A', whole(nowUs) } end
  call('SET', lock, owner, 'PX', ttlMs)
  keep(token, match(record, ' .*'))
  raiseTop(top, token)
  return 'G'
end
if verb == 'wait' then
  local waiter, since = unpack(ARGV, 2)
  local stored, kind, rest, text = load(false)
  local value = call('GET', lock)
  local rank = stand(waiter, since)
  if value then return inTheWay(value, stored, text, rank) end
  local leftMs = reserved(kind, rest, waiter)
  if leftMs then return { 'R', whole(stored), leftMs, rank } end
  return { 'O', whole(stored), rank }
end
if verb == 'leave' then
  local waiter, reserveMs = unpack(ARGV, 2)
  call('ZREM', waiters, waiter)
  reserveMs = tonumber(reserveMs)
  local stored, kind, rest = load(false)
  if kind == 'R' and match(rest, '^%d+ (.*)$') == waiter and not call('GET', lock) then
    keep(stored, reserveMs > 0 and pick('', '', reserveMs) or '')
  end
  return 1
end
if verb == 'renew' then
  local set, owner, token, span, ttlMs, channel = unpack(ARGV, 2)
  token, ttlMs = tonumber(token), tonumber(ttlMs)
  local value = call('GET', lock)
  if value == owner then
    local maxMs = call('HMGET', node, 'max')[1] or '0'
    if tonumber(maxMs) < ttlMs then return { 'T', maxMs } end
    local leftMs = call('PTTL', lock)
    if leftMs < ttlMs then
      call('PEXPIRE', lock, ttlMs)
      leftMs = ttlMs
    end
    call('PEXPIREAT', ballot, whole(math.floor((max(nowUs, token) + 2 * DAY) / 1000)))
    return { 'G', leftMs }
  end
  if value then return { 'H' } end
  local stored, kind, rest, text = load(false)
  if kind == 'V' then
    local revoked, reason = match(rest, '^(%S+) (.*)$')
    if revoked == owner then return { 'V', reason } end
  end
  local refusal, floor, top = admission(set, ttlMs)
  if refusal then return refusal end
  if text and stored > token then return { 'N' } end
  call('SET', lock, owner, 'PX', ttlMs)
  local record = table.concat({ owner, whole(token), span, whole(nowMs), channel, '' }, ' ')
  keep(max(stored, token), ' H ' .. record)
  raiseTop(top, token)
  return { 'G', ttlMs, 1 }
end
if verb == 'release' then
  local owner, start, _, reserveMs, keepMs, meta, waiter, since = unpack(ARGV, 2)
  local token = tonumber(match(start, '^%d+'))
  keepMs = tonumber(keepMs or 0)
  local isHeld = holder == owner
  if isHeld then call('DEL', lock) end
  local stored, kind, rest = load(false)
  local text = kind == '' and '' or ' ' .. kind .. ' ' .. rest
  stand(waiter, since)
  if isHeld and keepMs > 0 then
    local value = 'done:' .. owner
    call('SET', lock, value, 'PX', keepMs)
    local record = { value, whole(token), '01', whole(nowMs), '-', meta }
    text = ' D ' .. table.concat(record, ' ')
    for _, other in ipairs(call('ZRANGE', waiters, 0, -1)) do
      local channel, id = match(other, '^(.*)/(.*)$')
      call('PUBLISH', channel, 'w ' .. id)
    end
    call('DEL', waiters)
  elseif isHeld then
    text = pick(kind, rest, tonumber(reserveMs))
  end
  if token > nowUs + YEAR then token = 0 end
  keep(max(stored, token + 1), text)
  return isHeld and 1 or absence()
end
if verb == 'revoke' then
  local token, reason = unpack(ARGV, 2)
  local stored, kind, rest = load(false)
  local owner, first, span, _, channel = match(rest, '^(%S+) (%d+) (%d+) (%d+) (%S+)')
  local turn = (kind == 'H' or kind == 'D') and first and token - first
  if not turn or turn < 0 or turn - span >= 0 or call('GET', lock) ~= owner then
    return absence()
  end
  call('DEL', lock)
  local word = 'x ' .. owner .. ' ' .. first .. ' ' .. reason
  if channel ~= '-' then call('PUBLISH', channel, word) end
  pick('', '', 0)
  keep(max(stored, tonumber(first) + 1), ' V ' .. owner .. ' ' .. reason)
  return 1
end
if verb == 'look' then
  local line = call('ZRANGE', waiters, 0, -1, 'WITHSCORES')
  return { call('GET', lock) or '', call('PTTL', lock), call('GET', ballot) or '', line }
end
if verb == 'survey' then
  local uptime = match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  local fields = call('HMGET', node, 'run', 'set', 'from', 'max', 'floor', 'top')
  for at = 1, 6 do fields[at] = fields[at] or '' end
  return { runId(), uptime, whole(nowUs), unpack(fields) }
end
if verb == 'mark' then
  local run, set, how, maxMs, floor = unpack(ARGV, 2)
  if runId() ~= run then return 0 end
  maxMs = tonumber(maxMs)
  local fields = call('HMGET', node, 'run', 'set', 'from', 'max', 'floor', 'top')
  if fields[1] == run and fields[2] ~= set and how ~= 'now' then return 0 end
  local isAwake = fields[3] and tonumber(fields[3]) <= nowMs and fields[5] ~= ''
  if fields[1] == run and fields[2] == set and (how ~= 'now' or isAwake) then
    local more = max(0, maxMs - tonumber(fields[4]))
    call('HSET', node, 'max', whole(fields[4] + more))
    if more > 0 and tonumber(fields[3]) > nowMs then
      call('HSET', node, 'from', whole(fields[3] + more))
    end
    return 1
  end
  local uptime = tonumber(match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
  local from = 0
  if how == 'join' then from = nowMs + maxMs end
  if how == 'boot' then from = nowMs - uptime * 1000 + maxMs end
  local least = tonumber(fields[5] or '') or 0
  local top = max(least, tonumber(fields[6] or '') or 0)
  if floor ~= '' then
    floor = whole(max(least, tonumber(floor), nowUs))
    top = max(top, tonumber(floor))
  end
  call('HSET', node, 'run', run, 'set', set, 'from', whole(from), 'max', whole(maxMs),
    'floor', floor, 'top', whole(top))
  return 1
end
if verb == 'admit' then
  local run, floor = unpack(ARGV, 2)
  local fields = call('HMGET', node, 'run', 'from', 'floor', 'top')
  if runId() ~= run or fields[1] ~= run or fields[3] ~= '' then return 0 end
  if tonumber(fields[2]) > nowMs then return 0 end
  floor = max(tonumber(floor), tonumber(fields[4]))
  call('HSET', node, 'floor', whole(floor), 'top', whole(floor))
  return 1
end
if verb == 'raise' then
  local set, ttlMs = unpack(ARGV, 2)
  local fields = call('HMGET', node, 'run', 'set', 'max')
  if not fields[1] or fields[1] ~= runId() or fields[2] ~= set then return 0 end
  call('HSET', node, 'max', whole(max(tonumber(fields[3]), tonumber(ttlMs))))
  return 1
end`;
