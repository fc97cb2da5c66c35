-- A batch of ledger commands at one instant. Names that are free, or held by one exclusive owner
-- and without waiters, are strings and decided here; all others are hashes, left as they were to
-- state.lua and rules.lua, which are not even set up before they are needed.
--
-- A string is `granted f body` (the token is the time it was granted, the expiry follows from the
-- ttl), `granted + token body`, or `expiry token granted c body`; every number has 16 digits.
-- The index holds the names in use by the time they were granted, and under '' the last token.
--
-- in:       call try sub nowText index size
-- out:      now flags raise list endMs moving
-- commands: DEL EXISTS GET INFO PTTL SET ZADD ZRANGE ZREM ZSCORE
-- returns:  the time, a reply for each command, and where the flags ask for it the run id
local now, flags, format = tonumber(nowText), tonumber(ARGV[size + 1] or 0), string.format
local replies, turn = { nowText }, 1
local apply, last, isRaised, pending, motion

-- Raises the last token, reads it with 0. Written once, at the end.
local function raise(token)
  if not last then last = tonumber(call('ZSCORE', index, '') or 0) end
  if token > last then
    last, isRaised = token, true
  end
  return last
end

-- A name enters the index or leaves it, at the end.
local function list(key, isUsed)
  pending = pending or {}
  pending[key] = isUsed
end

-- When a key may go that matters until then: a little later, because the clock went on since this
-- batch read it, and a key whose time has passed already would be gone at once.
local function endMs(untilUs) return math.ceil(untilUs / 1000) + 100 end

-- While a slot of a Cluster moves, what is not here may be at its other end, and Redis refuses what
-- touches it. Two keys that never are find out: that is an error at both ends. What reads or writes
-- more than the keys of the call must ask first, or it would work with half of a lock.
local function moving()
  if motion == nil then
    local answer = flags % 2 == 1 and try('EXISTS', index .. '?', index .. '!')
    motion = type(answer) == 'table' and answer.err
  end
  return motion
end

local function leanAcquire(command, key)
  if nowText > sub(command, 2, 17) or nowText <= sub(command, 18, 33) then return nil end
  local lifeMs, head = string.match(command, '^%d+', 34), nowText .. 'f'
  local isLater = raise(0) >= now
  if isLater then head = nowText .. '+' .. format('%016.0f', last + 1) end
  local done = try('SET', key, head .. sub(command, 35 + #lifeMs), 'NX', 'PX', lifeMs)
  if not done then return nil end
  if done.err then return '!' .. done.err end
  raise(isLater and last + 1 or now)
  list(key, true)
  return isLater and 'G' .. format('%016.0f', last) or 'G'
end

-- The parts of a string that belongs to `owner` and has not expired.
local function own(key, owner)
  local value = try('GET', key)
  if not value or value.err then return nil, not value end
  local granted, form = sub(value, 1, 16), sub(value, 17, 17)
  local start = form == 'f' and 18 or form == '+' and 34 or 50
  if sub(value, start, start + #owner) ~= owner .. ' ' then return nil end
  local token, expiry = form == 'f' and granted or sub(value, 18, 33), nil
  if start == 50 then
    expiry, token, granted = tonumber(granted), sub(value, 17, 32), sub(value, 33, 48)
  else
    expiry = granted + string.match(value, '^%d+', start + #owner + 1)
  end
  if expiry <= now then return nil end
  return { expiry = expiry, token = token, granted = granted, body = sub(value, start) }
end

local function leanRelease(owner, key)
  local mine, isFree = own(key, owner)
  if isFree then return 'r' end
  if not mine then return nil end
  call('DEL', key)
  list(key, false)
  return 'R'
end

local function leanRenew(command, key)
  local ttl = string.match(command, '^%d+', 34)
  if nowText > sub(command, 2, 17) then return nil end
  local mine = own(key, sub(command, 35 + #ttl))
  if not mine then return nil end
  raise(tonumber(sub(command, 18, 33)))
  local expiry = math.max(mine.expiry, now + ttl)
  local value = format('%016.0f', expiry) .. mine.token .. mine.granted .. 'c' .. mine.body
  local untilMs = endMs(expiry)
  -- At maxmemory only what deletes first may write.
  if try('SET', key, value, 'PXAT', untilMs).err then
    call('DEL', key)
    call('SET', key, value, 'PXAT', untilMs)
  end
  return 'N' .. format('%.0f', expiry - now) .. ' 0 ' .. mine.token .. ' 1'
end

local function lean(command, key)
  local operation = sub(command, 1, 1)
  if operation == 'x' or operation == 'X' then return leanAcquire(command, key) end
  if operation == 'r' then return leanRelease(sub(command, 2), key) end
  if operation == 'n' then return leanRenew(command, key) end
end

while turn <= size do
  local reply = lean(ARGV[turn], KEYS[turn + 1])
  if not reply then
    if not apply then
      apply = (function()
        include('state')
        include('rules')
      end)()
    end
    reply = apply(ARGV[turn], KEYS[turn + 1])
  end
  turn = turn + 1
  replies[turn] = reply
end

if pending or isRaised then
  local added, removed = {}, {}
  if isRaised then added = { last, '' } end
  for key, isUsed in pairs(pending or {}) do
    if isUsed then
      added[#added + 1] = nowText
      added[#added + 1] = key
    else
      removed[#removed + 1] = key
    end
  end
  if removed[1] then call('ZREM', index, unpack(removed)) end
  if added[1] then call('ZADD', index, unpack(added)) end
end

-- Now and then, names that nobody released are looked for, so that the index never outgrows its
-- use; those that are still in use after a minute are listed anew.
if now % 16 == 0 and not moving() then
  for _, key in ipairs(call('ZRANGE', index, 0, now - 60000000, 'BYSCORE', 'LIMIT', 0, 64)) do
    local restMs = key ~= '' and call('PTTL', key)
    if restMs == -2 then
      call('ZREM', index, key)
    elseif restMs then
      call('ZADD', index, now + restMs * 1000, key)
    end
  end
end
if flags >= 2 then replies[turn + 1] = string.match(call('INFO', 'server'), 'run_id:(%x+)') end
return replies
