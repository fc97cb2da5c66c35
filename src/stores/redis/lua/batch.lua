-- A batch of ledger commands at one instant. Names that are free, or held by one exclusive owner
-- without waiters, are decided here, a mutex with waiters by line.lua; the rest is left to parts
-- that are not even set up before they are needed.
--
-- in:       try sub register now nowText format size texts raise learn nextToken isTimed spanOf
--           DETAIL NO_LIMIT LONGEST put expiryOf isOurs line finish
-- out:      refusal
-- commands: HSETNX
-- returns:  the time, a reply for each command, and where the flags ask for it the run id
local ACQUIRES = { X = true, x = true, E = true, e = true }
local replies, states, foreign, isGeneral = { nowText }, {}, {}, {}
local apply, commit, refused

-- Only an acquire asks whether it may write at all: the server's word against it, or false.
local function refusal()
  if refused == nil then
    local answer = try('HSETNX', register, '', '0')
    refused = type(answer) == 'table' and answer.err or false
  end
  return refused
end

-- Where the owner stands in a text that has not expired, if it is this one.
local function ownerAt(text, owner)
  local form = sub(text, 1, 1)
  local start = form == 'f' and 35 or form == '+' and 51 or form == 'h' and 67
  if not start or sub(text, start, start + #owner - 1) ~= owner then return nil end
  return expiryOf(text) > now and start or nil
end

local function leanAcquire(name, command, text)
  if text and (expiryOf(text) > now or not isOurs(text)) then return nil end
  if nowText > sub(command, 2, 17) or nowText <= sub(command, 18, 33) then return nil end
  if refusal() then return '!' .. refused end
  local span, token = spanOf(command), nextToken()
  if not span or not token then return nil end
  raise(token + span - 1)
  if token == now then
    put(name, 'f' .. nowText .. sub(command, 34))
    return 'G'
  end
  put(name, '+' .. nowText .. format('%016.0f', token) .. sub(command, 34))
  return format('G%.0f', token)
end

local function leanRelease(name, command, text)
  if not text then return 'r' end
  if not ownerAt(text, sub(command, 2)) then return nil end
  put(name, false)
  return 'R'
end

local function leanRenew(name, command, text)
  if not text or nowText > sub(command, 2, 17) or sub(command, 34, 49) > LONGEST then return nil end
  if not isTimed(command) or not isOurs(text) then return nil end
  local start = ownerAt(text, sub(command, 50))
  if not start then return nil end
  learn(tonumber(sub(command, 18, 33)))
  local expiry = math.max(expiryOf(text), now + sub(command, 34, 49))
  local token = start == 35 and sub(text, 2, 17) or sub(text, 18, 33)
  local request, span, _ = sub(text, start - 17), 1, nil
  if sub(request, 17, 17) ~= 'x' then
    _, _, span = string.match(request, DETAIL, 18)
  end
  -- Damaged: the general rules say so.
  if not span or expiry > NO_LIMIT then return nil end
  put(name, 'h' .. sub(text, 2, 17) .. token .. format('%016.0f', expiry) .. request)
  return format('N%.0f 0 ', expiry - now) .. token .. ' ' .. span
end

-- What stands at the name, or what the server said, ends the commands on it.
local function fail(name, failure)
  foreign[name] = (function()
    include('blame')
  end)()(name, failure)
end

for turn = 1, size do
  local name, command, reply = ARGV[turn], ARGV[size + turn], nil
  local operation, text = sub(command, 1, 1), texts[name]
  local isInLine = text and sub(text, 1, 1) == '='
  if foreign[name] then
    reply = '!' .. foreign[name]
  elseif states[name] then
    reply = nil
  elseif isInLine then
    reply = size > 1 and line(name, operation, command, text)
  elseif ACQUIRES[operation] then
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
    local done, answer, state = pcall(apply, states[name], name, operation, command)
    reply, states[name], isGeneral[turn] = answer, state, true
    if not done then fail(name, answer) end
  end
  replies[turn + 1] = reply
end

-- What fails, fails for all commands on its name that were not decided here, and for no other name.
for name, state in pairs(states) do
  local done, answer = true, nil
  if not foreign[name] then done, answer = pcall(commit, state) end
  if not done then fail(name, answer) end
end
for turn in pairs(isGeneral) do
  local why = foreign[ARGV[turn]]
  if why then replies[turn + 1] = '!' .. why end
end
return finish(replies)
