-- The short path for one command alone: an acquire of a free mutex, or a release by its only owner.
-- It makes no function and as few calls as possible. A command that it does not decide goes on to
-- the next parts; nothing has been written then.
--
-- in:       KEYS[1] the register; ARGV the names, then a command for each name (codec.ts), then
--           flags, if there are any
-- out:      call try sub register clock known nowText LONGEST
-- commands: HDEL HMGET HSET TIME
-- returns:  the time alone, if the lock was granted, or was released by its owner
local call, try, sub = redis.call, redis.pcall, string.sub
local register, clock, known = KEYS[1], call('TIME'), nil
local seconds, micros = clock[1], clock[2]
local nowText = sub('0000000000', #seconds + 1) .. seconds .. sub('000000', #micros + 1) .. micros
-- A hundred years, as in rules/bounds.ts. Numbers with the same number of digits compare as text.
local LONGEST = '3153600000000000'
local isLone = #ARGV == 2 or #ARGV == 3 and ARGV[3] == '4'
-- One call in 32 takes the general path, which also removes expired names (register.lua).
if isLone and clock[2] % 32 ~= 0 then
  local name, command = ARGV[1], ARGV[2]
  local operation = sub(command, COMMAND.operation)
  known = call('HMGET', register, '', name)
  local text = known[2]
  if operation == 'X' or operation == 'x' then
    local isInTime = nowText <= sub(command, ACQUIRE.notAfter)
    local isAhead = nowText > sub(command, ACQUIRE.seen)
    local isTimed = string.find(command, '%D', ACQUIRE.notAfter.start) == ACQUIRE.letter.start
    local last, isFair = known[1], isTimed and sub(command, ACQUIRE.ttl) <= LONGEST
    local isFree = not text and (not last or #last == FRESH.granted.size and last < nowText)
    if isInTime and isAhead and isFair and isFree then
      text = 'f' .. nowText .. sub(command, ACQUIRE.request)
      if type(try('HSET', register, name, text, '', nowText)) == 'number' then
        return tonumber(nowText)
      end
    end
  elseif operation == 'r' and text then
    local form = sub(text, FULL.form)
    local start = form == 'f' and FRESH.words.start or form == '+' and RAISED.words.start
    if start and sub(text, start, start + #command - 2) == sub(command, COMMAND.words) then
      local now = tonumber(nowText)
      local ttl = form == 'f' and sub(text, FRESH.ttl) or sub(text, RAISED.ttl)
      -- The general path reports a damaged text.
      if (tonumber(sub(text, FULL.granted)) or 0) + (tonumber(ttl) or 0) > now then
        call('HDEL', register, name)
        return now
      end
    end
  end
end
