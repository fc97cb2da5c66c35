-- The register: one hash with the last token under the empty name, and a text for each name in use.
-- The text is the only exclusive holder of the name (FRESH, RAISED or FULL in records.lua), or a
-- POINTER: then the state of the name is in a hash of its own (state.lua). A batch writes its
-- changes of the register once, at the end.
--
-- A text in none of these forms is foreign: every command on its name is refused, and the text
-- stays as it is. The script checks what it reads before the first write that follows from it.
--
-- in:       call try sub find format register micros known nowText LONGEST MOST_TURNS flags run
--           loneReply YEAR LAST_TOKEN now decide
-- out:      size texts digits raise learn nextToken isTimed spanOf put write moving expiryOf isOurs
--           contended finish
-- commands: EXISTS HDEL HMGET HRANDFIELD HSET
-- returns:  the time, the reply, and the run id if the flags ask for it: for one command alone with
--           flags on a mutex with waiters
local size = math.floor(#ARGV / 2)
local texts, numbers, isRaised, motion = {}, {}, nil, nil
-- The first digits of this time, and the number that they stand for: see `digits`.
local high, base = sub(nowText, 1, 10), now - micros
known = known or call('HMGET', register, '', unpack(ARGV, 1, size))
-- A last token that is no number is ignored: the clock and the clients' tokens give the next one.
local last = known[1] and find(known[1], '^%d+$') and tonumber(known[1]) or 0
for turn = 1, size do texts[ARGV[turn]] = known[turn + 1] end

-- The 16 digits of a time or a token. Most of them are of this very second, and Lua prints a small
-- whole number in less than half the time of a large one.
local function digits(number)
  local low = number - base
  if low >= 0 and low < 1000000 then return high .. format('%06d', low) end
  return format('%016.0f', number)
end

-- Raises the last token to this one, unless it is higher already.
local function raise(token)
  if token > last then
    last, isRaised = token, true
  end
  return last
end

-- Raises the last token to one that a client has seen. False if that token is too far ahead.
local function learn(seen)
  if seen <= math.min(now + YEAR, LAST_TOKEN) then raise(seen) end
  return seen <= last
end

-- Nil if all tokens that keep their digits are used up.
local function nextToken()
  local token = math.max(now, last + 1)
  return token <= LAST_TOKEN and token or nil
end

-- Whether the times and the seen token of an acquire or a renewal are numbers.
local function isTimed(command)
  return (find(command, '%D', RENEW.notAfter.start) or 0) >= RENEW.words.start
end

-- How many tokens an acquire asks for; nil if one of its numbers is out of bounds.
local function spanOf(command)
  if find(command, '%D', ACQUIRE.notAfter.start) ~= ACQUIRE.letter.start then return nil end
  local span = sub(command, ACQUIRE.span)
  if sub(command, ACQUIRE.ttl) > LONGEST or span == '0000' or span > MOST_TURNS then return nil end
  if sub(command, ACQUIRE.letter) ~= 'x' then
    local weight, limit = string.match(command, '^%S+ %S+ %d+ %d+ (%d+) (%d+) ', ACQUIRE.words)
    weight = tonumber(weight)
    if not weight or weight < 1 or weight > tonumber(limit) then return nil end
  end
  return tonumber(span)
end

-- Sets the text of a name; false removes it. `finish` writes it.
local function put(name, text) texts[name] = text end

-- A write that must not fail at maxmemory: Redis lets a script write after a delete, even after one
-- that found nothing.
local function write(...)
  local done = try(...)
  if type(done) ~= 'table' or not done.err then return done end
  call('HDEL', register, '?')
  return call(...)
end

-- The error of the server if the slot of the register is on its way to another node, else false.
-- Keys of such a slot may be on either node, and a part that used only the keys of one node would
-- work with half of a lock. So a part that uses more keys than the register asks first. Redis
-- answers a call for two keys that exist on no node with an error, on both nodes.
local function moving()
  if motion == nil then
    local answer = flags % 2 == 1 and try('EXISTS', register .. '?', register .. '!')
    motion = type(answer) == 'table' and answer.err
  end
  return motion
end

-- The number that a text says; 0 for a damaged text. The holders of a batch have many in common.
local function numberOf(text)
  local number = numbers[text]
  if not number then
    number = tonumber(text) or 0
    numbers[text] = number
  end
  return number
end

-- When a holder expires. A damaged text gives a time that is long past.
local function expiryOf(text)
  local form = sub(text, FULL.form)
  if form == 'h' or form == 'u' then return numberOf(sub(text, FULL.expiry)) end
  local ttl = form == 'f' and sub(text, FRESH.ttl) or sub(text, RAISED.ttl)
  return numberOf(sub(text, FULL.granted)) + numberOf(ttl)
end

-- Whether a text of the register, or of a holder, has one of the forms, with all its numbers and an
-- owner.
local function isOurs(text)
  local form = sub(text, FULL.form)
  if form == '=' then
    return #text > POINTER.place.before and not find(text, '%D', POINTER.place)
  end
  local letter = form == 'f' and FRESH.letter.start or form == '+' and RAISED.letter.start
    or (form == 'h' or form == 'u') and FULL.letter.start
  local _, _, digitsEnd = find(text, '^%d+()[xes]%S+ ', FULL.granted.start)
  return letter and digitsEnd == letter
end

-- The short path for a mutex with waiters; nil if it does not decide the command.
local function contended(name, operation, command, pointer)
  if moving() then return nil end
  local reply, moved, raised = decide(name, operation, command, pointer, last)
  if moved then put(name, moved) end
  if raised then raise(raised) end
  return reply
end

-- One call in 32 looks for expired names in samples of the register, and takes larger samples as
-- long as it finds many: so the register does not grow with names that no owner released.
local function sweep()
  if micros % 32 ~= 0 or moving() then return end
  local many = math.max(4, size)
  for _ = 1, 16 do
    local sample, dead = call('HRANDFIELD', register, many, 'WITHVALUES'), {}
    for at = 1, #sample, 2 do
      local name, text, isDead = sample[at], sample[at + 1], nil
      if name ~= '' and isOurs(text) then
        if sub(text, POINTER.form) == '=' then
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

-- Writes the changes, and adds the run id to the replies if the flags ask for it.
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

-- The short path for one command alone has decided it.
if loneReply then
  sweep()
  if run then return { nowText, loneReply, run } end
  return nowText
end

if size == 1 and flags > 0 then
  local name, command = ARGV[1], ARGV[2]
  local text, reply = texts[name], nil
  if text and sub(text, POINTER.form) == '=' then
    reply = contended(name, sub(command, COMMAND.operation), command, text)
  end
  if reply then return finish({ nowText, reply }) end
end
