-- One command alone, on a name that nobody else uses: the common case, in as few calls as can be.
-- What it cannot decide it leaves as it was to the parts that follow.
--
-- in:       KEYS[1] the register; ARGV the names, then a command for each of them (codec.ts), then
--           flags, where there are any
-- out:      call try sub register clock known nowText LONGEST
-- commands: HDEL HMGET HSET TIME
-- returns:  the time alone, when the command was granted, or released what it held
local call, try, sub = redis.call, redis.pcall, string.sub
local register, clock, known = KEYS[1], call('TIME'), nil
local seconds, micros = clock[1], clock[2]
local nowText = sub('0000000000', #seconds + 1) .. seconds .. sub('000000', #micros + 1) .. micros
-- A hundred years, as in rules/bounds.ts. Numbers of as many digits compare as text.
local LONGEST = '3153600000000000'
local isLone = #ARGV == 2 or #ARGV == 3 and ARGV[3] == '4'
-- One in 32 goes the long way, which also looks for what nobody released.
if isLone and clock[2] % 32 ~= 0 then
  local name, command = ARGV[1], ARGV[2]
  local operation = sub(command, 1, 1)
  known = call('HMGET', register, '', name)
  local text = known[2]
  if operation == 'X' or operation == 'x' then
    local isFresh = nowText <= sub(command, 2, 17) and nowText > sub(command, 18, 33)
    local isTimed = string.find(command, '%D', 2) == 50
    local last, isFair = known[1], isTimed and sub(command, 34, 49) <= LONGEST
    if isFresh and isFair and not text and (not last or #last == 16 and last < nowText) then
      text = 'f' .. nowText .. sub(command, 34)
      if type(try('HSET', register, name, text, '', nowText)) == 'number' then
        return tonumber(nowText)
      end
    end
  elseif operation == 'r' and text then
    local form = sub(text, 1, 1)
    local start = form == 'f' and 35 or form == '+' and 51
    if start and sub(text, start, start + #command - 2) == sub(command, 2) then
      local now, ttl = tonumber(nowText), sub(text, start - 17, start - 2)
      -- A text that is damaged is left to the parts that say so.
      if (tonumber(sub(text, 2, 17)) or 0) + (tonumber(ttl) or 0) > now then
        call('HDEL', register, name)
        return now
      end
    end
  end
end
