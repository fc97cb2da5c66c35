-- One node of a Redlock deployment: may it vote at all, and what does it keep of a name?
-- The same rules in TypeScript: node-rules.ts. Times of leases are in ms, ballots in microseconds.
--
-- Keys:  node     string: what it was told, cut by place (`told`); see node-rules.ts
--        lock     string: the owner, as in the published algorithm
--        ballot   string: the stored ballot, and behind it what is known of the name:
--                 H owner token span since channel meta    who took it
--                 W owner token span since channel meta    the same, or nothing; somebody waits
--                 D value token span since channel meta    the mark of a `once`
--                 R until waiter                           kept for the waiter that was woken
--                 V owner reason                           who was revoked, and why
--        waiters  sorted set: channel/id of those to be woken, by the time they say they came;
--                 named as the ballot is, but for one letter
--
-- A key may hold what this store did not write: a value of another type, or another text. Such a
-- key is never written and never deleted. The node then answers X, with the key and what it holds,
-- and does not vote. Waiters decide nothing: where their key holds something else, such as a sorted
-- set with members of another program, there is no line, and answers name the key at their end.
--
-- in:       call sub match node lock ballot marker holder raw
-- out:      max nowUs nowMs whole runId told tell admission strange strangeLock load keep raiseTop
--           longest isNamed waiters hasLine strangeLine isPlain stand say pick DAY YEAR
-- commands: INFO MGET PEXPIRE PUBLISH PUBSUB SET SETRANGE TIME TYPE ZADD ZRANGE ZRANK ZREM
local max = math.max
local DAY, YEAR = 86400000000, 31536000000000
-- So far ahead of the highest ballot `top` is kept, so that it is not written with every vote.
local STRIDE = 10000000
-- Who was woken and did not come for so many ms is stopped, or gone.
local SILENCE = 1000
-- So many waiters that cannot be reached are dropped in one call: the next release, or the waiters
-- themselves, who also look by their own clocks, go on.
local MOST_DROPPED = 64
-- In the place of a floor that is yet to be learned.
local UNKNOWN = '----------------'
-- A ballot outlives the time from which its absence says as much.
local SLACK = 60000000
local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)
-- Before `holdfast:node` may be a prefix; then comes a namespace, which has no colons.
local letter = string.find(ballot, ':', #node - 3, true)
local isNamed = letter ~= nil
local waiters = letter and sub(ballot, 1, letter) .. 'w' .. sub(ballot, letter + 2)

-- The channel and the id of a waiter of this store, or nil.
local function waiterOf(member) return match(member, '^(holdfast@.*)/(.*)$') end

local function isWaiter(at) return waiterOf(call('ZRANGE', waiters, at, at)[1]) end

local lineType = waiters and call('TYPE', waiters).ok
-- Members of another program before or behind all of ours: the key may be of that program.
local hasLine = lineType == 'zset' and isWaiter(0) and isWaiter(-1)
local strangeLine
if waiters and not hasLine and lineType ~= 'none' then
  strangeLine = { 'X', waiters, lineType }
  waiters = nil
end

local function whole(number) return string.format('%.0f', number) end

local function runId() return match(call('INFO', 'server'), 'run_id:(%x+)') end

-- The refusal for a key that reads as absent and is of another type, or nil.
local function typed(key)
  local kind = call('TYPE', key).ok
  if kind ~= 'none' then return { 'X', key, kind } end
end

-- What this node was told, or nil; floor nil is yet to be learned. Then the refusal, if the marker
-- is not ours.
local function told()
  if marker == nil then marker = call('MGET', node)[1] end
  local text = marker
  if not text then return nil, typed(node) end
  local floor = sub(text, 87, 102)
  local digits = sub(text, 1, 29) .. sub(text, 103, 141) .. (floor == UNKNOWN and '' or floor)
  if #text < 142 or match(digits, '%D') or not match(sub(text, 30, 86), '^[vn]%x+$') then
    return nil, { 'X', node, 'string' }
  end
  local top = tonumber(sub(text, 1, 16))
  -- Far beyond all ballots that nodes vote for, so it would close every name.
  if max(top, tonumber(floor) or 0) > nowUs + 10 * YEAR then return nil, { 'X', node, 'ahead' } end
  return {
    top = top, max = tonumber(sub(text, 17, 29)), id = sub(text, 31, 46),
    run = sub(text, 47, 86), floor = tonumber(floor), from = tonumber(sub(text, 103, 115)),
    long = tonumber(sub(text, 116, 128)), till = tonumber(sub(text, 129, 141)),
    set = sub(text, 142),
  }
end

-- A `v` where nothing but the lease is left to be asked about.
local function tell(known)
  local floor = known.floor and string.format('%016.0f', known.floor) or UNKNOWN
  local state = known.floor and known.from == 0 and 'v' or 'n'
  local id = sub(redis.sha1hex(known.set), 1, 16)
  call('SET', node, string.format('%016.0f%013.0f', known.top, known.max) .. state .. id
    .. known.run .. floor
    .. string.format('%013.0f%013.0f%013.0f', known.from, known.long, known.till) .. known.set)
end

-- How long a lease may be that is granted now.
local function longest(known)
  return nowMs < known.till and max(known.max, known.long) or known.max
end

-- Why this node does not vote for such a lease, or nil; then what it was told. The channel is one
-- that who asks may listen to, as lean.lua says; without a listener, the server is asked.
local function admission(id, ttlMs, channel)
  local known, foreign = told()
  if not known then return foreign or { 'U' } end
  local isHeard = call('PUBSUB', 'NUMSUB', channel .. '/' .. known.run)[2] > 0
  if not isHeard and known.run ~= runId() then return { 'U' } end
  if known.id ~= id then return { 'S', known.set } end
  local waitMs = known.from - nowMs
  if waitMs > 0 then return { 'Q', whole(waitMs) } end
  if not known.floor then return { 'F' } end
  if longest(known) < ttlMs then return { 'T', whole(longest(known)) } end
  -- Once is enough: a clock that is set back does not take the vote away again.
  if known.from ~= 0 then
    known.from = 0
    tell(known)
  end
  return nil, known
end

-- The floor follows the clock, a day behind it, and never back.
local function followed(known)
  local bound = nowUs - DAY
  if not known or not known.floor then return bound end
  if bound > known.floor + SLACK / 2 then
    known.floor = bound
    tell(known)
  end
  return max(bound, known.floor)
end

-- The refusal where the lock is of another type, or nil. A text that is not ours is a holder.
local function strangeLock()
  if not holder then return typed(lock) end
end

-- The refusal where the ballot is not ours, or nil. Nothing is kept of such a name.
local function strange()
  if not raw then return typed(ballot) end
  local stored, kind, rest = match(raw, '^(%d+) ?([HWDRV]?) ?(.*)$')
  local isOurs = stored and #stored == 16 and (kind ~= '' or rest == '')
    and (kind ~= 'R' or match(rest, '^%d+ .*/'))
  if not isOurs then return { 'X', ballot, 'string' } end
end

-- The stored ballot, and what is known of the name; `known` nil: asked for if it matters.
local function load(known)
  if raw then
    local stored, kind, rest = match(raw, '^(%d+) ?(%a?) ?(.*)$')
    return tonumber(stored), kind, rest, raw
  end
  return followed(known or told()), '', '', nil
end

local function keep(stored, text)
  local untilMs = math.floor((max(nowUs, stored) + DAY + SLACK) / 1000)
  call('SET', ballot, whole(stored) .. text, 'PXAT', whole(untilMs))
end

local function raiseTop(known, token)
  if token <= known.top then return end
  known.top = token + STRIDE
  tell(known)
end

-- A release looks for those who wait only where it reads that there are any.
local function isPlain(kind) return kind == '' or kind == 'H' end

-- Enters a waiter, unless it is there, and tells how many are before it. All nodes order by what
-- the waiter itself says of its time, so that they wake the same one.
local function stand(waiter, since, kind, text)
  if not waiters or not waiter or waiter == '' then return 0 end
  call('ZADD', waiters, 'NX', since, waiter)
  call('PEXPIRE', waiters, 60000)
  if text and isPlain(kind) then call('SETRANGE', ballot, #match(text, '^%d+'), ' W') end
  return call('ZRANK', waiters, waiter)
end

-- Tells a waiter, and how many heard it: none of a text that names no channel of ours.
local function say(word, waiter)
  local channel, id = waiterOf(waiter)
  return channel and call('PUBLISH', channel, word .. ' ' .. id) or 0
end

-- Wakes the first waiter that can be reached. Who was woken before and did not come has to enter
-- again; after a long silence, so have all who hear by the same channel. They are told.
local function pick(kind, rest, reserveMs)
  if not waiters then return '' end
  local untilMs, last = match(rest, '^(%d+) (.*)$')
  if kind ~= 'R' or tonumber(untilMs) > nowMs then last = nil end
  local silent
  if last then
    local channel = match(last, '^(.*)/')
    local isSilent = tonumber(untilMs) + SILENCE < nowMs
    if isSilent then silent = channel end
    say('e', isSilent and channel .. '/' or last)
    call('ZREM', waiters, last)
  end
  for _ = 1, MOST_DROPPED do
    local line = call('ZRANGE', waiters, 0, 1)
    local waiter, second = line[1], line[2]
    if not waiter or not waiterOf(waiter) then return '' end
    if match(waiter, '^(.*)/') ~= silent and say('w', waiter) > 0 then
      -- Should the first not come, the second does not wait for long.
      if second then say('s', second) end
      return ' R ' .. whole(nowMs + reserveMs) .. ' ' .. waiter
    end
    call('ZREM', waiters, waiter)
  end
  return ' W'
end
