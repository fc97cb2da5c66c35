-- The keys of one node for a name, and the rules that the scripts share. node-rules.ts has the same
-- rules in TypeScript. Leases are timed in ms, ballots in microseconds.
--
-- A single server decides without other nodes (IS_SINGLE_SERVER). It has no marker, because no
-- other node could tell it what it forgot. Its first key is that of the waiters, so that all keys
-- of a call are in one slot of a Cluster (IS_SPREAD).
--
-- node     string: the marker of the node, fixed width, so that its parts compare as text
--            1- 16  top    no ballot that the node voted for is above it
--           17- 29  max    the longest lease that the node votes for
--           30- 30  state  v: a vote depends on the length of the lease alone; n: on more
--           31- 46  id     of the set of nodes
--           47- 86  run    the process that the marker was written for
--           87-102  floor  a name without a ballot counts as if it had this one; dashes: not known
--          103-115  from   the node does not vote before that time
--          116-128  long   leases may be that long
--          129-141  till   until that time
--          142-     set    the nodes
-- lock     string: the owner, as in the published algorithm
-- ballot   string: 16 digits, and behind them a record of the name:
--            H owner token span since channel meta    the holder
--            W owner token span since channel meta    the same, or nothing; there are waiters
--            D value token span since channel meta    the mark of a `once`
--            R until waiter                           reserved for the waiter that was woken
--            V owner reason                           the owner that was revoked, and why
-- waiters  sorted set: channel/id of the waiters, by the time when each says it came; its name is
--          that of the ballot with another letter; a single server is given it
--
-- A key may hold data of another program: a value of another type, or another text. Such a key is
-- never written and never deleted. The node then answers X, with the key and its type, and does not
-- vote. Waiters decide nothing: if their key holds foreign data, such as a sorted set with members
-- of another program, the name has no queue, and answers end with that X.

-- The state of the keys, and what can be asked and done about it. A script creates its
-- functions in each call, so an uncontended vote or release does without them.
local function open(keys, kept)
  local call, sub, match, max = redis.call, string.sub, string.match, math.max
  local node, lock, ballot = keys[1], keys[2], keys[3]
  kept = kept or call('MGET', lock, ballot, node)
  local holder, raw, marker = kept[1], kept[2], kept[3]
  local DAY, YEAR = 86400000000, 31536000000000
  -- `top` is kept this far ahead of the highest ballot, so that not every vote has to write it.
  local STRIDE = 10000000
  -- A waiter that was woken and does not ask within this many ms is stopped or gone.
  local SILENCE = 1000
  -- One call drops at most this many waiters that do not listen. The next release goes on; waiters
  -- also look by their own clocks.
  local MAX_DROPPED = 64
  local UNKNOWN_FLOOR = '----------------'
  -- A ballot is kept for a day, and a little longer: from then on its absence says as much.
  local SLACK = 60000000
  -- And for as long again as ballots share an expiry (vote.lua).
  local PERIOD = 1000000000
  local time = call('TIME')
  local nowUs = time[1] * 1000000 + time[2]
  local nowMs = math.floor(nowUs / 1000)
  -- Keys may begin with a prefix of the client. Behind `holdfast:` comes a namespace, which has no
  -- colons, and then the letter of the key. A request about the node itself has no such letter.
  local letter = not IS_SINGLE_SERVER and string.find(ballot, ':', #node - 3, true)
  local waiters = letter and sub(ballot, 1, letter) .. 'w' .. sub(ballot, letter + 2)
  if IS_SINGLE_SERVER then waiters = node end

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

  local function server(field) return match(call('INFO', 'server'), field .. ':(%x+)') end

  local function uptimeMs() return server('uptime_in_seconds') * 1000 end

  -- The refusal for a key that reads as absent and is of another type, or nil.
  local function foreignType(key)
    local kind = call('TYPE', key).ok
    if kind ~= 'none' then return { 'X', key, kind } end
  end

  -- The marker as a table, or nil; without a floor, it is not known yet. The second value is the
  -- refusal if the marker is foreign.
  local function readMarker()
    if IS_SINGLE_SERVER then return { top = 0, max = math.huge, long = 0, till = 0 } end
    local text = marker
    if not text then return nil, foreignType(node) end
    local floor = sub(text, 87, 102)
    local digits = sub(text, 1, 29) .. sub(text, 103, 141)
      .. (floor == UNKNOWN_FLOOR and '' or floor)
    if #text < 142 or match(digits, '%D') or not match(sub(text, 30, 86), '^[vn]%x+$') then
      return nil, { 'X', node, 'string' }
    end
    local top = tonumber(sub(text, 1, 16))
    -- No node votes for ballots so far ahead, so this marker would close every name.
    local highest = max(top, tonumber(floor) or 0)
    if highest > nowUs + 10 * YEAR then return nil, { 'X', node, 'ahead' } end
    return {
      top = top, max = tonumber(sub(text, 17, 29)), id = sub(text, 31, 46),
      run = sub(text, 47, 86), floor = tonumber(floor), from = tonumber(sub(text, 103, 115)),
      long = tonumber(sub(text, 116, 128)), till = tonumber(sub(text, 129, 141)),
      set = sub(text, 142),
    }
  end

  local function writeMarker(known)
    local floor = known.floor and string.format('%016.0f', known.floor) or UNKNOWN_FLOOR
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

  -- Why this node does not vote for a lease of this length, or nil and the marker. A listener of
  -- the channel of its run proves that the marker was written for this process (vote.lua); without
  -- a listener the run id of the server decides.
  --
  -- A single server grants no lock until `id` milliseconds after its start.
  local function admission(id, ttlMs)
    local known, foreign = readMarker()
    if IS_SINGLE_SERVER then
      local delayMs = tonumber(id)
      local waitMs = delayMs > 0 and delayMs - uptimeMs() or 0
      if waitMs > 0 then return { 'Q', whole(waitMs) } end
      return nil, known
    end
    if not known then return foreign or { 'U' } end
    local isHeard = call('PUBSUB', 'NUMSUB', 'holdfast@/' .. known.run)[2] > 0
    if not isHeard and known.run ~= server('run_id') then return { 'U' } end
    if known.id ~= id then return { 'S', known.set } end
    local waitMs = known.from - nowMs
    if waitMs > 0 then return { 'Q', whole(waitMs) } end
    if not known.floor then return { 'F' } end
    if longest(known) < ttlMs then return { 'T', whole(longest(known)) } end
    -- The time has come once. Without this write, a clock that is set back would end the votes.
    if known.from ~= 0 then
      known.from = 0
      writeMarker(known)
    end
    return nil, known
  end

  -- The floor follows the clock, a day behind it, and never goes back. A single server that lost
  -- its data asks no other node, so its floor is as high as a clock that is a little slow allows.
  local function floorOf(known)
    if IS_SINGLE_SERVER then return nowUs - 1000000 end
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

  -- The refusal if the ballot is foreign, or nil. Nothing is kept of such a name, so every verb
  -- about it is refused.
  local function foreignBallot()
    if not letter and not IS_SINGLE_SERVER then return nil end
    if not raw then return foreignType(ballot) end
    local stored, kind, rest = match(raw, '^(%d+) ?([HWDRV]?) ?(.*)$')
    local isBallot = stored and #stored == 16 and (kind ~= '' or rest == '')
      and (kind ~= 'R' or match(rest, '^%d+ .*/'))
    if not isBallot then return { 'X', ballot, 'string' } end
  end

  -- The stored ballot, its kind and the rest of its text. Without a ballot the floor counts, for
  -- which the marker is read unless it is given.
  local function readBallot(known)
    if not raw then return floorOf(known or readMarker()), '', '' end
    local stored, kind, rest = match(raw, '^(%d+) ?(%a?) ?(.*)$')
    return tonumber(stored), kind, rest
  end

  -- When a ballot expires; `leastMs`: it is kept for at least that long from now on.
  local function keptUntilMs(stored, leastMs)
    local untilMs = math.floor((max(nowUs, stored) + DAY + SLACK + PERIOD) / 1000)
    return leastMs and max(untilMs, nowMs + leastMs) or untilMs
  end

  local function writeBallot(stored, text, leastMs)
    call('SET', ballot, whole(stored) .. text, 'PXAT', whole(keptUntilMs(stored, leastMs)))
  end

  local function raiseTop(known, token)
    if IS_SINGLE_SERVER or token <= known.top then return end
    known.top = token + STRIDE
    writeMarker(known)
  end

  -- The refusal if the stored ballot is above all ballots that a client may propose, or nil.
  local function ahead(stored, known)
    if stored > max(nowUs + YEAR, known and known.top or 0) then return { 'X', ballot, 'ahead' } end
  end

  -- Whether the record says that there are no waiters. A release looks for waiters only otherwise.
  local function isPlain(kind) return kind == '' or kind == 'H' end

  local function recordKind() return hasQueue and ' W' or ' H' end

  -- Adds a waiter to the queue, unless it is there, and gives the number of waiters before it. All
  -- nodes order by the time that the waiter gives, so that they wake the same waiter.
  local function enqueue(waiter, since, kind)
    if not waiters or not waiter or waiter == '' then return 0 end
    call('ZADD', waiters, 'NX', since, waiter)
    call('PEXPIRE', waiters, 60000)
    if raw and kind and isPlain(kind) then call('SETRANGE', ballot, 16, ' W') end
    return call('ZRANK', waiters, waiter)
  end

  -- Sends a message to a waiter and gives the number of listeners; 0 for a foreign member.
  local function notify(word, waiter)
    local channel, id = waiterOf(waiter)
    local listeners = channel and call('PUBLISH', channel, word .. ' ' .. id) or 0
    -- In a Cluster, PUBLISH counts only the listeners at its own server.
    return channel and IS_SPREAD and 1 or listeners
  end

  -- Wakes the first waiter that listens, and gives the text for the ballot. The waiter that was
  -- woken last and did not ask leaves the queue; after a long silence, all waiters of its channel
  -- do. They are told to enter again.
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
    for _ = 1, MAX_DROPPED do
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

  -- The answer to an owner that may not have the lock, because another one holds it or because it
  -- is reserved for another waiter that was woken; nil otherwise. Enters the waiter into the queue.
  local function taken(owner, waiter, since, stored, kind, rest)
    if holder and holder ~= owner then
      local rank = enqueue(waiter, since, kind)
      return { 'H', whole(stored), call('PTTL', lock), holder, raw or '', rank, foreignQueue }
    end
    if holder or kind ~= 'R' then return nil end
    local untilMs, woken = match(rest, '^(%d+) (.*)$')
    local leftMs = tonumber(untilMs) - nowMs
    if leftMs <= 0 or woken == waiter then return nil end
    return { 'R', whole(stored), leftMs, enqueue(waiter, since, kind), foreignQueue }
  end

  -- The answer that nothing is held: 0, or -1 if the node may have forgotten.
  local function absence()
    if IS_SINGLE_SERVER then return 0 end
    local known = readMarker()
    return known and known.run == server('run_id') and known.from <= nowMs and 0 or -1
  end

  return {
    holder = holder, raw = raw, nowUs = nowUs, nowMs = nowMs, DAY = DAY, YEAR = YEAR,
    waiters = waiters, foreignQueue = foreignQueue,
    whole = whole, server = server, uptimeMs = uptimeMs, notify = notify,
    readMarker = readMarker, writeMarker = writeMarker, longest = longest, admission = admission,
    foreignLock = foreignLock, foreignBallot = foreignBallot, readBallot = readBallot,
    keptUntilMs = keptUntilMs, writeBallot = writeBallot, raiseTop = raiseTop, ahead = ahead,
    isPlain = isPlain, recordKind = recordKind, enqueue = enqueue, wakeNext = wakeNext,
    taken = taken, absence = absence,
  }
end
