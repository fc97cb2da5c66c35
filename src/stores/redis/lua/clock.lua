-- The start of every script: what the call brings, and the time.
local call, try, sub, byte = redis.call, redis.pcall, string.sub, string.byte
local find, match, format = string.find, string.match, string.format
local R, count, clock = KEYS[1], #ARGV, call('TIME')
local seconds, micros, known = clock[1], clock[2], nil
local nowText = seconds .. micros
if #nowText ~= 16 then
  nowText = sub('0000000000', #seconds + 1) .. seconds .. sub('000000', #micros + 1) .. micros
end
-- A user without the right to INFO, and a server that hides its run, are refused here, before the
-- first write: an answer without the run id could be read as another one.
local flags = count % 2 == 1 and tonumber(ARGV[count]) or 0
local run = flags % 4 > 1 and match(call('INFO', 'server'), 'run_id:(%x+)') or nil
if flags % 4 > 1 and not run then return { err = 'ERR INFO has no run_id' } end
