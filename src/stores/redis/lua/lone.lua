-- The short path for one command alone: an acquire of a free mutex, or a release by its only owner.
-- It makes no function and as few calls as possible, and uses no key but the register, so it serves
-- a Cluster, too. A command that it does not decide goes on to the next parts; nothing has been
-- written then.
--
-- in:       KEYS[1] the register; ARGV the names, then a command for each name (codec.ts), then
--           flags, if there are any
-- out:      call try sub find format register micros known loneText nowText LONGEST MOST_TURNS
--           flags run loneReply
-- commands: HDEL HGET HMGET HSET INFO TIME
-- returns:  the time alone, if the lock was granted, or was released by its owner
local call, try, sub = redis.call, redis.pcall, string.sub
local find, format = string.find, string.format
local register, count, clock = KEYS[1], #ARGV, call('TIME')
local known, loneText, loneReply
local seconds, micros = clock[1], clock[2]
local nowText = seconds .. micros
if #seconds ~= 10 or #micros ~= 6 then
  nowText = sub('0000000000', #seconds + 1) .. seconds .. sub('000000', #micros + 1) .. micros
end
-- As in rules/bounds.ts. Numbers with the same number of digits compare as text.
local LONGEST, MOST_TURNS, SECOND = '3153600000000000', '1024', '0000000001000000'
-- Flags: 1, a Cluster; 2, tell the run id; 4, write the last token even if it was not raised.
-- WAIT proves that replicas have an answer only if the same call has written (replication.ts).
local flags, run = count % 2 == 1 and tonumber(ARGV[count]) or 0, nil
-- A user without the right to INFO is refused here, before the first write.
if flags % 4 > 1 then run = string.match(call('INFO', 'server'), 'run_id:(%x+)') end
if count == 2 or count == 3 then
  local name, command = ARGV[1], ARGV[2]
  local operation = sub(command, COMMAND.operation)
  if operation == 'X' or operation == 'x' then
    known = call('HMGET', register, '', name)
    loneText = known[2]
    local last, span = known[1], sub(command, ACQUIRE.span)
    local isFree = not known[2] and (not last or #last == FRESH.granted.size and last < nowText)
    local isTimely = isFree and nowText <= sub(command, ACQUIRE.notAfter)
      and nowText > sub(command, ACQUIRE.seen)
    local request, letter, _ = isTimely and sub(command, ACQUIRE.request), nil, nil
    -- A request begins with its ttl and its span. The register keeps them, so they must be digits.
    if isTimely and span > '0000' and span <= MOST_TURNS and request < LONGEST then
      _, letter = find(request, '^%d+x')
    end
    if letter == REQUEST.letter.start then
      local lastToken = nowText
      if span > '0001' then
        -- Lua prints a small whole number in less than half the time of a large one.
        local lastMicros = micros + span - 1
        local isSameSecond = #seconds == 10 and lastMicros < 1000000
        lastToken = isSameSecond and seconds .. format('%06d', lastMicros)
          or format('%016.0f', nowText + span - 1)
      end
      local text = 'f' .. nowText .. request
      if type(try('HSET', register, name, text, '', lastToken)) == 'number' then loneReply = 'G' end
    end
  elseif operation == 'r' then
    local text = call('HGET', register, name)
    loneText = text
    local form = text and sub(text, FULL.form)
    local start = form == 'f' and FRESH.words.start or form == '+' and RAISED.words.start
      or form == 'h' and FULL.words.start
    if start and find(text, sub(command, COMMAND.words), start, true) == start then
      -- The general path reports a damaged text.
      local expiry, isHeld
      if form == 'h' then
        expiry = tonumber(sub(text, FULL.expiry)) or 0
      else
        local ttl = form == 'f' and sub(text, FRESH.ttl) or sub(text, RAISED.ttl)
        -- Granted in this second, for a second or more: no sum is needed.
        isHeld = sub(text, FULL.second) == seconds and ttl >= SECOND and ttl <= LONGEST
        expiry = isHeld or (tonumber(sub(text, FULL.granted)) or 0) + (tonumber(ttl) or 0)
      end
      if isHeld or expiry > seconds * 1000000 + micros then
        call('HDEL', register, name)
        loneReply = 'R'
      end
    end
  end
  -- One acquire in 32 also removes expired names (register.lua): each name in use was acquired.
  if loneReply and not (loneReply == 'G' and micros % 32 == 0) then
    if run then return { nowText, loneReply, run } end
    return nowText
  end
end
