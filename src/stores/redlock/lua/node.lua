-- One node of a Redlock deployment: whether it may vote, and its keys for a name. The same rules in
-- TypeScript are in node-rules.ts. Times of leases are in ms, ballots in microseconds.
--
-- A lone server decides without other nodes (IS_LONE). It has no marker, because no other node
-- could tell it what it forgot. The first key is then that of the waiters, so that all keys of a
-- call are in one slot of a Cluster.
--
-- Keys:  node     string: MARKER (records.lua)
--        lock     string: the owner, as in the published algorithm
--        ballot   string: the stored ballot, and behind it a record of the name:
--                 H owner token span since channel meta    the holder
--                 W owner token span since channel meta    the same, or nothing; there are waiters
--                 D value token span since channel meta    the mark of a `once`
--                 R until waiter                           reserved for the waiter that was woken
--                 V owner reason                           the owner that was revoked, and why
--        waiters  sorted set: channel/id of the waiters, by the time when each says it came; its
--                 name is that of the ballot with another letter; a lone server is given it
--
-- A key may hold data of another program: a value of another type, or another text. Such a key is
-- never written and never deleted. The node then answers X, with the key and its type, and does not
-- vote. Waiters decide nothing: if their key holds foreign data, such as a sorted set with members
-- of another program, the name has no queue, and answers end with that X.
--
-- in:       call sub match
-- out:      verb lock ballot holder raw max nowUs nowMs whole runId readMarker writeMarker
--           admission foreignBallot foreignLock readBallot writeBallot raiseTop longest isNamed
--           waiters hasQueue foreignQueue isPlain enqueue notify wakeNext DAY YEAR
-- commands: INFO MGET PEXPIRE PUBLISH PUBSUB SET SETRANGE TIME TYPE ZADD ZRANGE ZRANK ZREM
local verb, node, lock, ballot = ARGV[1], KEYS[1], KEYS[2], KEYS[3]
local kept = call('MGET', lock, ballot, node)
local holder, raw, marker = kept[1], kept[2], kept[3]
local max = math.max
local SECOND, DAY, YEAR = 1000000, 86400000000, 31536000000000
-- `top` is kept so far ahead of the highest ballot, so that not every vote has to write it.
local STRIDE = 10000000
-- A waiter that was woken and does not ask for so many ms is stopped or gone.
local SILENCE = 1000
-- One call drops at most so many waiters that do not listen. The next release goes on; waiters also
-- look by their own clocks.
local MOST_DROPPED = 64
-- Stands for a floor that is yet to be learned.
local UNKNOWN = '----------------'
-- A ballot is kept for a day, and a little longer: from then on its absence says as much.
local SLACK = 60000000
-- And for as long again as ballots share an expiry (lean.lua). So a ballot that takes over the
-- expiry of an earlier ballot of the same period is kept for a day and SLACK after its own time.
local PERIOD = 1000000000
local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)
-- Keys may begin with a prefix of the client. Behind `holdfast:` comes a namespace, which has no
-- colons, and then the letter of the key.
local letter = not IS_LONE and string.find(ballot, ':', #node - 3, true)
local isNamed = IS_LONE or letter ~= nil
local waiters = letter and sub(ballot, 1, letter) .. 'w' .. sub(ballot, letter + 2)
if IS_LONE then waiters = node end

-- The channel and the id of a waiter of this store, or nil.
local function waiterOf(member) return match(member, '^(holdfast@.*)/(.*)$') end

local function isWaiter(at) return waiterOf(call('ZRANGE', waiters, at, at)[1]) end

local queueType = waiters and call('TYPE', waiters).ok
-- If the first or the last member is foreign, the key may belong to another program.
local hasQueue = queueType == 'zset' and isWaiter(0) and isWaiter(-1)
local foreignQueue
if waiters and not hasQueue and queueType ~= 'none' then
  foreignQueue = { 'X', waiters, queueType }
  waiters = nil
end

local function whole(number) return string.format('%.0f', number) end

local function runId() return match(call('INFO', 'server'), 'run_id:(%x+)') end

-- The refusal for a key that reads as absent and is of another type, or nil.
local function foreignType(key)
  local kind = call('TYPE', key).ok
  if kind ~= 'none' then return { 'X', key, kind } end
end

-- The marker as a table, or nil; without a floor, it is yet to be learned. The second value is the
-- refusal if the marker is foreign.
local function readMarker()
  if IS_LONE then return { top = 0, max = math.huge, long = 0, till = 0 } end
  local text = marker
  if not text then return nil, foreignType(node) end
  local floor = sub(text, MARKER.floor)
  local digits = sub(text, MARKER.top.to.max) .. sub(text, MARKER.from.to.till)
    .. (floor == UNKNOWN and '' or floor)
  if #text < MARKER.set.start or match(digits, '%D')
    or not match(sub(text, MARKER.state.to.run), '^[vn]%x+$') then
    return nil, { 'X', node, 'string' }
  end
  local top = tonumber(sub(text, MARKER.top))
  -- No node votes for ballots so far ahead, so this marker would close every name.
  if max(top, tonumber(floor) or 0) > nowUs + 10 * YEAR then return nil, { 'X', node, 'ahead' } end
  return {
    top = top, max = tonumber(sub(text, MARKER.max)), id = sub(text, MARKER.id),
    run = sub(text, MARKER.run), floor = tonumber(floor), from = tonumber(sub(text, MARKER.from)),
    long = tonumber(sub(text, MARKER.long)), till = tonumber(sub(text, MARKER.till)),
    set = sub(text, MARKER.set),
  }
end

-- The state `v` says that a vote depends on the length of the lease alone.
local function writeMarker(known)
  local floor = known.floor and string.format('%016.0f', known.floor) or UNKNOWN
  local state = known.floor and known.from == 0 and 'v' or 'n'
  local id = sub(redis.sha1hex(known.set), 1, 16)
  call('SET', node, string.format('%016.0f%013.0f', known.top, known.max) .. state .. id
    .. known.run .. floor
    .. string.format('%013.0f%013.0f%013.0f', known.from, known.long, known.till) .. known.set)
end

-- The longest lease that may be granted now.
local function longest(known)
  return nowMs < known.till and max(known.max, known.long) or known.max
end

-- Why this node does not vote for a lease of this length, or nil and the marker. A listener of the
-- channel of its run proves that the marker was written for this process (lean.lua); without a
-- listener the run id of the server decides.
--
-- A lone server gives out locks so long after its start as `id` says.
local function admission(id, ttlMs)
  local known, foreign = readMarker()
  if IS_LONE then
    local delayMs = tonumber(id)
    if delayMs == 0 then return nil, known end
    local uptime = match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
    local waitMs = delayMs - uptime * 1000
    if waitMs > 0 then return { 'Q', whole(waitMs) } end
    return nil, known
  end
  if not known then return foreign or { 'U' } end
  local isHeard = call('PUBSUB', 'NUMSUB', 'holdfast@/' .. known.run)[2] > 0
  if not isHeard and known.run ~= runId() then return { 'U' } end
  if known.id ~= id then return { 'S', known.set } end
  local waitMs = known.from - nowMs
  if waitMs > 0 then return { 'Q', whole(waitMs) } end
  if not known.floor then return { 'F' } end
  if longest(known) < ttlMs then return { 'T', whole(longest(known)) } end
  -- The time has come once. Without this write, a clock that is set back would end the votes again.
  if known.from ~= 0 then
    known.from = 0
    writeMarker(known)
  end
  return nil, known
end

-- The floor follows the clock, a day behind it, and never goes back. A lone server that lost its
-- data asks no other node, so its floor is as high as a clock that is a little slow allows.
local function followed(known)
  if IS_LONE then return nowUs - SECOND end
  local bound = nowUs - DAY
  if not known or not known.floor then return bound end
  if bound > known.floor + SLACK / 2 then
    known.floor = bound
    writeMarker(known)
  end
  return max(bound, known.floor)
end

-- The refusal if the lock is of another type, or nil. A foreign text counts as a holder.
local function foreignLock()
  if not holder then return foreignType(lock) end
end

-- The refusal if the ballot is foreign, or nil. Nothing is kept of such a name.
local function foreignBallot()
  if not raw then return foreignType(ballot) end
  local stored, kind, rest = match(raw, '^(%d+) ?([HWDRV]?) ?(.*)$')
  local isOurs = stored and #stored == RECORD.ballot.size and (kind ~= '' or rest == '')
    and (kind ~= 'R' or match(rest, '^%d+ .*/'))
  if not isOurs then return { 'X', ballot, 'string' } end
end

-- The stored ballot, its kind and the rest of its text, and the text. Without a ballot the floor
-- counts, for which the marker is read unless it is given.
local function readBallot(known)
  if raw then
    local stored, kind, rest = match(raw, '^(%d+) ?(%a?) ?(.*)$')
    return tonumber(stored), kind, rest, raw
  end
  return followed(known or readMarker()), '', '', nil
end

-- `leastMs`: the ballot is kept for at least so long from now on.
local function writeBallot(stored, text, leastMs)
  local untilMs = math.floor((max(nowUs, stored) + DAY + SLACK + PERIOD) / 1000)
  if leastMs then untilMs = max(untilMs, nowMs + leastMs) end
  call('SET', ballot, whole(stored) .. text, 'PXAT', whole(untilMs))
end

local function raiseTop(known, token)
  if IS_LONE or token <= known.top then return end
  known.top = token + STRIDE
  writeMarker(known)
end

-- Whether the record says that there are no waiters. A release looks for waiters only otherwise.
local function isPlain(kind) return kind == '' or kind == 'H' end

-- Adds a waiter to the queue, unless it is there, and gives the number of waiters before it. All
-- nodes order by the time that the waiter gives, so that they wake the same waiter.
local function enqueue(waiter, since, kind, text)
  if not waiters or not waiter or waiter == '' then return 0 end
  call('ZADD', waiters, 'NX', since, waiter)
  call('PEXPIRE', waiters, 60000)
  if text and isPlain(kind) then call('SETRANGE', ballot, #match(text, '^%d+'), ' W') end
  return call('ZRANK', waiters, waiter)
end

-- Sends a message to a waiter and gives the number of listeners; 0 for a foreign member.
local function notify(word, waiter)
  local channel, id = waiterOf(waiter)
  local listeners = channel and call('PUBLISH', channel, word .. ' ' .. id) or 0
  -- In a Cluster, PUBLISH counts only the listeners at its own server.
  return channel and IS_SPREAD and 1 or listeners
end

-- Wakes the first waiter that listens, and gives the text for the ballot. The waiter that was woken
-- last and did not ask leaves the queue; after a long silence, all waiters of its channel do. They
-- are told to enter again.
local function wakeNext(kind, rest, reserveMs)
  if not waiters then return '' end
  local untilMs, last = match(rest, '^(%d+) (.*)$')
  if kind ~= 'R' or tonumber(untilMs) > nowMs then last = nil end
  local silent
  if last then
    local channel = match(last, '^(.*)/')
    local isSilent = tonumber(untilMs) + SILENCE < nowMs
    if isSilent then silent = channel end
    notify('e', isSilent and channel .. '/' or last)
    call('ZREM', waiters, last)
  end
  for _ = 1, MOST_DROPPED do
    local first = call('ZRANGE', waiters, 0, 1)
    local waiter, second = first[1], first[2]
    if not waiter or not waiterOf(waiter) then return '' end
    if match(waiter, '^(.*)/') ~= silent and notify('w', waiter) > 0 then
      -- If the first does not ask, the second looks soon.
      if second then notify('s', second) end
      return ' R ' .. whole(nowMs + reserveMs) .. ' ' .. waiter
    end
    call('ZREM', waiters, waiter)
  end
  return ' W'
end
