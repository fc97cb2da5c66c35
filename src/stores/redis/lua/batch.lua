-- A batch of commands at one instant. A mutex without waiters is decided here, one with waiters by
-- contended.lua, everything else by the general rules. A script makes its functions anew for each
-- call, so a part is set up only when a command needs it.
--
-- in:       try sub find register now nowText size texts digits raise learn nextToken isTimed
--           spanOf NO_LIMIT LONGEST put expiryOf isOurs contended finish
-- out:      refusal
-- commands: HSETNX
-- returns:  the time, a reply for each command, and the run id if the flags ask for it. Replies of
--           one letter each come as one text
-- The letter of each operation that acquires.
local ACQUIRES = { X = 'x', x = 'x', E = 'e', e = 'e', S = 's', s = 's' }
local replies, states, foreign, isGeneral = { nowText }, {}, {}, {}
local apply, commit, refused
-- The last acquire or renewal that was spelled out: a command `"` asks for the same, for its own
-- owner. `follow` is the token after the last one that a reply told.
local terms, follow = { operation = '"', before = '', after = '' }, now
local isTerse = size > 1

-- The error of the server if it lets the script write nothing, else false. Acquires ask, before
-- their first write; other commands may write even at maxmemory (`write`).
local function refusal()
  if refused == nil then
    local answer = try('HSETNX', register, '', '0')
    refused = type(answer) == 'table' and answer.err or false
  end
  return refused
end

-- Reads the terms of an acquire or a renewal, and gives its owner, with the space behind it.
local function read(operation, command)
  local isAcquire = ACQUIRES[operation]
  local start = isAcquire and ACQUIRE.words.start or RENEW.words.start
  local stop = find(command, ' ', start, true) or #command
  local before, after = sub(command, 1, start - 1), sub(command, stop + 1)
  terms = { operation = operation, before = before, after = after }
  local isInTime = nowText <= sub(command, ACQUIRE.notAfter)
  if isAcquire and isInTime and isAcquire ~= 's' and nowText > sub(command, ACQUIRE.seen) then
    terms.span, terms.request = spanOf(command), sub(command, ACQUIRE.ttl.to.letter)
  elseif not isAcquire and isInTime and isTimed(command) and sub(command, RENEW.ttl) <= LONGEST then
    terms.expiry, terms.seen = now + sub(command, RENEW.ttl), tonumber(sub(command, RENEW.seen))
    terms.expiryText = digits(terms.expiry)
  end
  return sub(command, start, stop)
end

-- Where the owner stands in a confirmed holder that has not expired, and when that holder expires;
-- nil if it is another owner.
local function ownerAt(text, owner)
  local form = sub(text, FULL.form)
  local start = form == 'f' and FRESH.words.start or form == '+' and RAISED.words.start
    or form == 'h' and FULL.words.start
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
  -- The general rules report a damaged text.
  if not terms.expiry or not text or not isOurs(text) then return nil end
  local start, expiry = ownerAt(text, owner)
  if not start or expiry > terms.expiry or terms.expiry > NO_LIMIT then return nil end
  learn(terms.seen)
  local granted, request = sub(text, FULL.granted), sub(text, start - REQUEST.words.before)
  local token = start == FRESH.words.start and granted or sub(text, FULL.token)
  put(name, 'h' .. granted .. token .. terms.expiryText .. request)
  return 'n' .. token .. sub(request, REQUEST.span)
end

-- All commands on the name are answered with the reason.
local function fail(name, failure)
  foreign[name] = (function()
    include('failure')
  end)()(name, failure)
end

for turn = 1, size do
  local name, command, reply, owner = ARGV[turn], ARGV[size + turn], nil, nil
  local operation, text = sub(command, COMMAND.operation), texts[name]
  if operation == '"' then
    owner, operation, command = sub(command, COMMAND.words), terms.operation, nil
  elseif ACQUIRES[operation] or operation == 'n' then
    owner = read(operation, command)
  end
  if foreign[name] then
    reply = '!' .. foreign[name]
  elseif states[name] then
    reply = nil
  elseif text and sub(text, POINTER.form) == '=' then
    -- A lone command has been to the short path before.
    if size > 1 then
      command = command or terms.before .. owner .. terms.after
      reply = contended(name, operation, command, text)
    end
  elseif operation == 'r' then
    reply = leanRelease(name, text, sub(command, COMMAND.words))
  elseif operation == 'n' then
    reply = leanRenew(name, text, owner)
  elseif owner then
    reply = leanAcquire(name, text, owner)
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
    command = command or terms.before .. owner .. terms.after
    local done, answer, state = pcall(apply, states[name], name, operation, command)
    reply, states[name], isGeneral[turn], isTerse = answer, state, true, false
    if not done then fail(name, answer) end
  end
  replies[turn + 1], isTerse = reply, isTerse and #reply == 1
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
if isTerse then replies = { nowText, table.concat(replies, '', 2) } end
return finish(replies)
