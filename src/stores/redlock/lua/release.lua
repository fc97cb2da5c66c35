-- Frees the lock if the owner holds it, closes the name up to its ballot, and wakes a waiter.
--
-- KEYS    node (waiters on a single server), lock, ballot
-- ARGV 1  start      "ballot H owner ", the beginning of the owner's record
--      2  closed     the ballot + 1
--      3  reserveMs  for how long the name is kept for the waiter that is woken
--      4  keepMs     leaves the mark of a `once` for this time; 0: none
--      5  meta       of the mark
--      6  waiter     the waiter (channel/id) of the same process that goes on waiting
--      7  since      the time by which it queues
--         Arguments from 4 on may be left out.
--
-- result  1 released; 0 not held; -1 not held, as far as this node remembers; X key type
local call, sub = redis.call, string.sub
local start, lock, ballot = ARGV[1], KEYS[2], KEYS[3]
local owner = sub(start, 20, -2)
local isPlain = #ARGV == 3
local kept = call('MGET', lock, ballot, KEYS[1])
-- The holder, without a waiter and a mark. The time for which the ballot is kept is long enough for
-- the ballot above it.
if isPlain and kept[1] == owner and kept[2] and string.find(kept[2], start, 1, true) == 1 then
  call('DEL', lock)
  call('SET', ballot, ARGV[2], 'KEEPTTL')
  return 1
end

local node = open(KEYS, kept)
local foreign = node.foreignBallot()
if foreign then return foreign end
local token, keepMs = tonumber(sub(start, 1, 16)), tonumber(ARGV[4] or 0)
local nowUs, nowMs, whole = node.nowUs, node.nowMs, node.whole
-- A request that was sent again finds the mark that it left.
if keepMs > 0 and node.holder == 'done:' .. owner then return 1 end
local isHeld = node.holder == owner
if isHeld then call('DEL', lock) end
local stored, kind, rest = node.readBallot()
node.enqueue(ARGV[6], ARGV[7])
if ARGV[6] and node.isPlain(kind) then kind = 'W' end
local text = kind == '' and '' or ' ' .. kind .. ' ' .. rest
-- The record of a mark is kept for longer than the mark, also when it is written again. Its own
-- expiry says for how long.
local leastMs = kind == 'D' and not isHeld and call('PTTL', ballot) or nil
if isHeld and keepMs > 0 then
  leastMs = keepMs + node.DAY / 1000
  local value = 'done:' .. owner
  call('SET', lock, value, 'PX', keepMs)
  text = ' D ' .. table.concat({ value, whole(token), '01', whole(nowMs), '-', ARGV[5] }, ' ')
  if node.waiters then
    -- Waiters behind these see the mark when they look by their own clocks.
    for _, other in ipairs(call('ZRANGE', node.waiters, 0, 255)) do node.notify('w', other) end
    call('DEL', node.waiters)
  end
elseif isHeld then
  text = node.wakeNext(kind, rest, tonumber(ARGV[3]))
end
-- A ballot so far ahead would close the name until then, if it is not the ballot of the name.
if token > math.max(nowUs + node.YEAR, stored) then token = 0 end
node.writeBallot(math.max(stored, token + 1), text, leastMs)
return isHeld and 1 or node.absence()
