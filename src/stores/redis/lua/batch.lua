-- A batch of commands at one instant. A mutex without waiters is decided here, one with waiters by
-- contended.lua, everything else by the general rules. A script makes its functions anew for each
-- call, so a part is set up only when a command needs it.
--
-- in:       try sub format register now nowText size texts raise learn nextToken isTimed spanOf
--           NO_LIMIT LONGEST put expiryOf isOurs contended finish
-- out:      refusal
-- commands: HSETNX
-- returns:  the time, a reply for each command, and the run id if the flags ask for it
local ACQUIRES = { X = true, x = true, E = true, e = true }
local replies, states, foreign, isGeneral = { nowText }, {}, {}, {}
local apply, commit, refused

-- The error of the server if it lets the script write nothing, else false. Acquires ask, before
-- their first write; other commands may write even at maxmemory (`write`).
local function refusal()
  if refused == nil then
    local answer = try('HSETNX', register, '', '0')
    refused = type(answer) == 'table' and answer.err or false
  end
  return refused
end

-- Where the owner stands in a confirmed holder that has not expired; nil if it is another owner.
local function ownerAt(text, owner)
  local form = sub(text, FULL.form)
  local start = form == 'f' and FRESH.words.start or form == '+' and RAISED.words.start
    or form == 'h' and FULL.words.start
  if not start or sub(text, start, start + #owner - 1) ~= owner then return nil end
  return expiryOf(text) > now and start or nil
end

local function leanAcquire(name, command, text)
  if text and (expiryOf(text) > now or not isOurs(text)) then return nil end
  if nowText > sub(command, ACQUIRE.notAfter) then return nil end
  if nowText <= sub(command, ACQUIRE.seen) then return nil end
  if refusal() then return '!' .. refused end
  local span, token = spanOf(command), nextToken()
  if not span or not token then return nil end
  raise(token + span - 1)
  if token == now then
    put(name, 'f' .. nowText .. sub(command, ACQUIRE.request))
    return 'G'
  end
  put(name, '+' .. nowText .. format('%016.0f', token) .. sub(command, ACQUIRE.request))
  return format('G%.0f', token)
end

local function leanRelease(name, command, text)
  if not text then return 'r' end
  if not ownerAt(text, sub(command, COMMAND.words)) then return nil end
  put(name, false)
  return 'R'
end

local function leanRenew(name, command, text)
  if not text or nowText > sub(command, RENEW.notAfter) then return nil end
  if sub(command, RENEW.ttl) > LONGEST or not isTimed(command) or not isOurs(text) then
    return nil
  end
  local start = ownerAt(text, sub(command, RENEW.words))
  if not start then return nil end
  learn(tonumber(sub(command, RENEW.seen)))
  local expiry = math.max(expiryOf(text), now + sub(command, RENEW.ttl))
  local granted, isFresh = sub(text, FULL.granted), start == FRESH.words.start
  local token = isFresh and granted or sub(text, FULL.token)
  local request = sub(text, start - REQUEST.words.before)
  -- The general rules report a damaged text.
  if expiry > NO_LIMIT then return nil end
  put(name, 'h' .. granted .. token .. format('%016.0f', expiry) .. request)
  return format('N%.0f 0 ', expiry - now) .. token .. ' ' .. sub(request, REQUEST.span)
end

-- All commands on the name are answered with the reason.
local function fail(name, failure)
  foreign[name] = (function()
    include('failure')
  end)()(name, failure)
end

for turn = 1, size do
  local name, command, reply = ARGV[turn], ARGV[size + turn], nil
  local operation, text = sub(command, COMMAND.operation), texts[name]
  local hasHash = text and sub(text, POINTER.form) == '='
  if foreign[name] then
    reply = '!' .. foreign[name]
  elseif states[name] then
    reply = nil
  elseif hasHash then
    -- A lone command has been to the short path before.
    reply = size > 1 and contended(name, operation, command, text)
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

-- A failure ends all commands on its name that the general rules decided, and no other command.
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
