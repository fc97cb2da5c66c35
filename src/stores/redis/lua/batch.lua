-- A batch of ledger commands at one instant. The register is one hash: the last token under '', and
-- for each name in use either its lone exclusive holder as a text, decided here, or '=': then its
-- state is in a hash of its own, left to the parts that are not even set up before they are needed.
--
-- A text is a form, the time it was granted, and the request as the client sent it: its ttl, a
-- letter, words (codec.ts). `f`: the token is that time, and the expiry follows from the ttl. `+`:
-- the token stands before the request. `h`: token and expiry do. These numbers have 16 digits.
--
-- in:       call try sub register clock known nowText
-- out:      now flags texts raise put write refusal moving expiryOf
-- commands: EXISTS HDEL HMGET HRANDFIELD HSET HSETNX INFO
-- returns:  the time, a reply for each command, and where the flags ask for it the run id
local now, count, format = tonumber(nowText), #ARGV, string.format
local flags, size = count % 2 == 1 and tonumber(ARGV[count]) or 0, math.floor(count / 2)
local DETAIL = '^%S+ %S+ %d+ %d+ %d+ %d+ (%d+)'
local replies, texts, changed, states = { nowText }, {}, {}, {}
local apply, commit, refused, isRaised, motion
known = known or call('HMGET', register, '', unpack(ARGV, 1, size))
local last = tonumber(known[1] or 0)
for turn = 1, size do texts[ARGV[turn]] = known[turn + 1] end

-- Raises the last token, reads it with 0. Written once, at the end.
local function raise(token)
  if token > last then
    last, isRaised = token, true
  end
  return last
end

-- What the register says of a name, false for nothing. Written once, at the end.
local function put(name, text) texts[name], changed[name] = text, true end

-- At maxmemory a script may write once it has deleted, or tried to.
local function write(...)
  local done = try(...)
  if type(done) ~= 'table' or not done.err then return done end
  call('HDEL', register, '?')
  return call(...)
end

-- Only an acquire asks whether it may write at all: the server's word against it, or false.
local function refusal()
  if refused == nil then
    local answer = try('HSETNX', register, '', '0')
    refused = type(answer) == 'table' and answer.err or false
  end
  return refused
end

-- While a slot of a Cluster moves, what is not here may be at its other end, and Redis refuses what
-- touches it. Two keys that never are find out: that is an error at both ends. What reads or writes
-- more than the register must ask first, or it would work with half of a lock.
local function moving()
  if motion == nil then
    local answer = flags % 2 == 1 and try('EXISTS', register .. '?', register .. '!')
    motion = type(answer) == 'table' and answer.err
  end
  return motion
end

local function expiryOf(text)
  local form = sub(text, 1, 1)
  if form == 'h' or form == 'u' then return tonumber(sub(text, 34, 49)) end
  return sub(text, 2, 17) + (form == 'f' and sub(text, 18, 33) or sub(text, 34, 49))
end

-- Where the owner stands in a text that has not expired, if it is this one.
local function ownerAt(text, owner)
  local form = sub(text, 1, 1)
  local start = form == 'f' and 35 or form == '+' and 51 or form == 'h' and 67
  if not start or sub(text, start, start + #owner - 1) ~= owner then return nil end
  return expiryOf(text) > now and start or nil
end

local function leanAcquire(name, command, text)
  if text and (sub(text, 1, 1) == '=' or expiryOf(text) > now) then return nil end
  if nowText > sub(command, 2, 17) or nowText <= sub(command, 18, 33) then return nil end
  if refusal() then return '!' .. refused end
  isRaised = true
  if last < now then
    last = now
    put(name, 'f' .. nowText .. sub(command, 34))
    return 'G'
  end
  last = last + 1
  local token = format('%.0f', last)
  put(name, '+' .. nowText .. token .. sub(command, 34))
  return 'G' .. token
end

local function leanRelease(name, command, text)
  if not text then return 'r' end
  if not ownerAt(text, sub(command, 2)) then return nil end
  put(name, false)
  return 'R'
end

local function leanRenew(name, command, text)
  if not text or nowText > sub(command, 2, 17) then return nil end
  local start = ownerAt(text, sub(command, 50))
  if not start then return nil end
  raise(tonumber(sub(command, 18, 33)))
  local expiry = math.max(expiryOf(text), now + sub(command, 34, 49))
  local token = start == 35 and sub(text, 2, 17) or sub(text, 18, 33)
  local request, span = sub(text, start - 17), 1
  put(name, 'h' .. sub(text, 2, 17) .. token .. format('%016.0f', expiry) .. request)
  if sub(request, 17, 17) ~= 'x' then span = string.match(request, DETAIL, 18) end
  return format('N%.0f 0 ', expiry - now) .. token .. ' ' .. span
end

for turn = 1, size do
  local name, command, reply = ARGV[turn], ARGV[size + turn], nil
  local operation, text = sub(command, 1, 1), texts[name]
  if states[name] then
    reply = nil
  elseif operation == 'X' or operation == 'x' then
    reply = leanAcquire(name, command, text)
  elseif operation == 'r' then
    reply = leanRelease(name, command, text)
  elseif operation == 'n' then
    reply = leanRenew(name, command, text)
  end
  if not reply then
    if not apply then
      apply, commit = (function()
        include('entry')
        include('state')
        include('queue')
        include('holders')
        include('rules')
      end)()
    end
    reply, states[name] = apply(states[name], name, operation, command)
  end
  replies[turn + 1] = reply
end

for _, state in pairs(states) do commit(state) end
if isRaised or next(changed) then
  local added, removed = {}, {}
  if isRaised then added = { '', format('%016.0f', last) } end
  local add, remove = #added, 0
  for name in pairs(changed) do
    local text = texts[name]
    if text then
      added[add + 1], added[add + 2] = name, text
      add = add + 2
    else
      remove = remove + 1
      removed[remove] = name
    end
  end
  if remove > 0 then call('HDEL', register, unpack(removed)) end
  if add > 0 then write('HSET', register, unpack(added)) end
end

-- Now and then, names that nobody released are looked for, the longer the more there are: so the
-- register never outgrows its use.
if clock[2] % 32 == 0 and not moving() then
  local many = math.max(16, size)
  for _ = 1, 16 do
    local sample, dead = call('HRANDFIELD', register, many, 'WITHVALUES'), {}
    for at = 1, #sample, 2 do
      local name, text, isDead = sample[at], sample[at + 1], nil
      if sub(text, 1, 1) == '=' then
        isDead = call('EXISTS', register .. ':' .. name) == 0
      else
        isDead = name ~= '' and expiryOf(text) <= now
      end
      if isDead then dead[#dead + 1] = name end
    end
    if dead[1] then call('HDEL', register, unpack(dead)) end
    if #dead * 4 < many then break end
  end
end
if flags >= 2 then replies[size + 2] = string.match(call('INFO', 'server'), 'run_id:(%x+)') end
return replies
