-- The register is one hash: the last token under '', and for each name in use either its lone
-- exclusive holder as a text, or `=` and a place in its queue: then its state is in a hash of its
-- own. What a batch changes in it is written once, at the end.
--
-- A text is a form, the time it was granted, and the request as the client sent it: its ttl, a
-- letter, words (codec.ts). `f`: the token is that time, and the expiry follows from the ttl. `+`:
-- the token stands before the request. `h`: token and expiry do. These numbers have 16 digits.
--
-- A name whose text has no such form is foreign: commands on it are refused, and its text stays as
-- it is. Whatever is read from a key is checked before the first write that follows from it.
--
-- in:       call try sub register clock known nowText LONGEST
-- out:      NO_LIMIT now format find flags size texts raise learn nextToken isTimed spanOf DETAIL
--           put write moving expiryOf isOurs line finish
-- commands: EXISTS HDEL HMGET HRANDFIELD HSET INFO
-- returns:  the time, the reply, and where the flags ask for it the run id, if one command came
--           alone for a mutex with waiters
local NO_LIMIT = 9007199254740991
-- As in rules/bounds.ts and rules/token.ts.
local YEAR, MOST_TURNS, LAST_TOKEN = 31536000000000, 1024, NO_LIMIT - 1024
local DETAIL = '^%S+ %S+ %d+ %d+ (%d+) (%d+) (%d+) '
local now, count, format, find = tonumber(nowText), #ARGV, string.format, string.find
local flags, size = count % 2 == 1 and tonumber(ARGV[count]) or 0, math.floor(count / 2)
-- An answer that replicas must have is proven by a write of the same call (replication.ts): with
-- the flag 4 the last token is written, whether it was raised or not.
local texts, changed, isRaised, motion, linePart = {}, {}, nil, nil, nil
-- A user that may not ask for the run id is refused here, before the first write.
local run = flags % 4 > 1 and string.match(call('INFO', 'server'), 'run_id:(%x+)')
known = known or call('HMGET', register, '', unpack(ARGV, 1, size))
-- A last token that is no number is forgotten: the clock and the clients tell the next.
local last = known[1] and find(known[1], '^%d+$') and tonumber(known[1]) or 0
for turn = 1, size do texts[ARGV[turn]] = known[turn + 1] end

-- Raises the last token, reads it with 0. Written once, at the end.
local function raise(token)
  if token > last then
    last, isRaised = token, true
  end
  return last
end

-- Counts on from a token that a client has seen; false where that is beyond reason.
local function learn(seen)
  if seen <= math.min(now + YEAR, LAST_TOKEN) then raise(seen) end
  return seen <= last
end

-- Nil where none is left that keeps all its digits.
local function nextToken()
  local token = math.max(now, last + 1)
  return token <= LAST_TOKEN and token or nil
end

-- Whether the times of an acquire or a renewal, and the token it has seen, are numbers.
local function isTimed(command) return (find(command, '%D', 2) or 0) >= 50 end

-- How many tokens an acquire asks for; nil where any of its terms is out of bounds.
local function spanOf(command)
  if not isTimed(command) or sub(command, 34, 49) > LONGEST then return nil end
  if sub(command, 50, 50) == 'x' then return 1 end
  local weight, limit, span = string.match(command, DETAIL, 51)
  weight, span = tonumber(weight), tonumber(span)
  local isFair = weight >= 1 and weight <= tonumber(limit) and span >= 1 and span <= MOST_TURNS
  return isFair and span or nil
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

-- Long past where the text is damaged.
local function expiryOf(text)
  local form = sub(text, 1, 1)
  if form == 'h' or form == 'u' then return tonumber(sub(text, 34, 49)) or 0 end
  local ttl = form == 'f' and sub(text, 18, 33) or sub(text, 34, 49)
  return (tonumber(sub(text, 2, 17)) or 0) + (tonumber(ttl) or 0)
end

-- Whether a text of the register, or of a holder, has one of the forms, with all its numbers and an
-- owner.
local function isOurs(text)
  local form = sub(text, 1, 1)
  if form == '=' then return #text > 1 and not find(text, '%D', 2) end
  local start = form == 'f' and 34 or form == '+' and 50 or (form == 'h' or form == 'u') and 66
  return start and find(text, '%D', 2) == start and find(text, '^[xes]%S+ ', start) == start
end

-- Decides a command on a mutex with waiters, if it is a simple one.
local function line(name, operation, command, mark)
  if moving() then return nil end
  if not linePart then
    linePart = (function()
      include('line')
    end)()
  end
  return linePart(name, operation, command, mark)
end

-- Writes what has changed.
local function finish(replies)
  if isRaised or flags >= 4 or next(changed) then
    local added, removed = {}, {}
    if isRaised then
      added = { '', format('%016.0f', last) }
    elseif flags >= 4 then
      added = { '', known[1] or '0' }
    end
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
    end
  end
  if run then replies[size + 2] = run end
  return replies
end

if size == 1 then
  local name, command = ARGV[1], ARGV[2]
  local mark = texts[name]
  local reply = mark and sub(mark, 1, 1) == '=' and line(name, sub(command, 1, 1), command, mark)
  if reply then return finish({ nowText, reply }) end
end
