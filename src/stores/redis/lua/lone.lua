-- One command alone, on a name that nobody else uses: the common case, in as few calls as can be.
-- What it cannot decide it leaves as it was to the parts that follow, now and then all of it: they
-- look after the index.
--
-- in:       KEYS[1] the index, KEYS[1 + n] the name of command n; ARGV[n] command n (codec.ts),
--           ARGV[n + 1] flags, where there are any
-- out:      call try sub nowText index size
-- commands: DEL GET SET TIME ZADD ZREM
-- returns:  the time alone, when the command was granted, or released what it held
local call, try, sub = redis.call, redis.pcall, string.sub
local clock, index, size = call('TIME'), KEYS[1], #KEYS - 1
local nowText = string.format('%s%06d', clock[1], clock[2])
if size == 1 and not ARGV[2] and clock[2] % 256 ~= 0 then
  local command, key = ARGV[1], KEYS[2]
  local operation = sub(command, 1, 1)
  if operation == 'X' or operation == 'x' then
    if nowText <= sub(command, 2, 17) and nowText > sub(command, 18, 33) then
      local lifeMs = string.match(command, '^%d+', 34)
      local value = nowText .. 'f' .. sub(command, 35 + #lifeMs)
      local done = try('SET', key, value, 'NX', 'PX', lifeMs)
      if done and done.ok then
        -- When both scores rise, the last token was below this instant.
        if call('ZADD', index, 'GT', 'CH', nowText, '', nowText, key) == 2 then
          return tonumber(nowText)
        end
        call('DEL', key)
      end
    end
  elseif operation == 'r' then
    local owner, value = sub(command, 2), try('GET', key)
    if value and not value.err and sub(value, 17, 18 + #owner) == 'f' .. owner .. ' ' then
      local now = tonumber(nowText)
      if sub(value, 1, 16) + string.match(value, '^%d+', 19 + #owner) > now then
        call('DEL', key)
        call('ZREM', index, key)
        return now
      end
    end
  end
end
