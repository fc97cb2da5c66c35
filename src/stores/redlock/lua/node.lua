-- One node of a Redlock deployment: may it vote at all, and what does it keep of a name?
-- The same rules in TypeScript: node-rules.ts. Times of leases are in ms, ballots in microseconds.
--
-- Keys:  node     hash: run, set, from, max, floor, top; see node-rules.ts
--        lock     string: the owner, as in the published algorithm
--        ballot   string: the stored ballot, and behind it what is known of the name:
--                 H owner token span since channel meta    who took it
--                 D value token span since channel meta    the mark of a `once`
--                 R until waiter                           kept for the waiter that was woken
--                 V owner reason                           who was revoked, and why
--        waiters  sorted set: channel/id of those to be woken, by the time they say they came
--
-- in:       call node ballot waiters marker isAlive raw
-- out:      match max nowUs nowMs whole runId admission load keep raiseTop stand pick DAY YEAR
-- commands: GET HMGET HSET INFO PEXPIRE PUBLISH SET TIME ZADD ZRANGE ZRANK ZREM
local match, max = string.match, math.max
local DAY, YEAR = 86400000000, 31536000000000
-- So far ahead of the highest ballot `top` is kept, so that it is not written with every vote.
local STRIDE = 10000000
-- Who was woken and did not come for so many ms is stopped, or gone.
local SILENCE = 1000
-- A ballot outlives the time from which its absence says as much.
local SLACK = 60000000
local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)

local function whole(number) return string.format('%.0f', number) end

local function runId() return match(call('INFO', 'server'), 'run_id:(%x+)') end

-- Why this node does not vote for such a lease, or nil; then its floor and top.
local function admission(set, ttlMs)
  local fields = marker or call('HMGET', node, 'run', 'set', 'from', 'max', 'floor', 'top')
  if not fields[1] or not isAlive and fields[1] ~= runId() then return { 'U' } end
  if fields[2] ~= set then return { 'S', fields[2] } end
  local waitMs = tonumber(fields[3]) - nowMs
  if waitMs > 0 then return { 'Q', whole(waitMs) } end
  if fields[5] == '' then return { 'F' } end
  if tonumber(fields[4]) < ttlMs then return { 'T', fields[4] } end
  -- Once is enough: a clock that is set back does not take the vote away again.
  if fields[3] ~= '0' then call('HSET', node, 'from', '0') end
  return nil, tonumber(fields[5]), tonumber(fields[6])
end

-- The floor follows the clock, a day behind it, and never back.
local function followed(floor)
  local bound = nowUs - DAY
  if not floor then return bound end
  if bound > floor + SLACK / 2 then call('HSET', node, 'floor', whole(bound)) end
  return max(bound, floor)
end

-- The stored ballot, and what is known of the name; `floor` false: asked for if it matters.
local function load(floor)
  local text = raw
  if text == nil then text = call('GET', ballot) end
  if text then
    local stored, kind, rest = match(text, '^(%d+) ?(%a?) ?(.*)$')
    return tonumber(stored), kind, rest, text
  end
  floor = floor or tonumber(call('HMGET', node, 'floor')[1] or '')
  return followed(floor), '', '', nil
end

local function keep(stored, text)
  local untilMs = math.floor((max(nowUs, stored) + DAY + SLACK) / 1000)
  call('SET', ballot, whole(stored) .. text, 'PXAT', whole(untilMs))
end

local function raiseTop(top, token)
  if token > top then call('HSET', node, 'top', whole(token + STRIDE)) end
end

-- Enters a waiter, unless it is there, and tells how many are before it. All nodes order by what
-- the waiter itself says of its time, so that they wake the same one.
local function stand(waiter, since)
  if not waiter or waiter == '' then return 0 end
  call('ZADD', waiters, 'NX', since, waiter)
  call('PEXPIRE', waiters, 60000)
  return call('ZRANK', waiters, waiter)
end

-- Wakes the first waiter that can be reached. Who was woken before and did not come has to enter
-- again; after a long silence, so have all who hear by the same channel. They are told.
local function pick(kind, rest, reserveMs)
  local untilMs, last = match(rest, '^(%d+) (.*)$')
  if kind ~= 'R' or tonumber(untilMs) > nowMs then last = nil end
  local silent
  if last then
    local channel, id = match(last, '^(.*)/(.*)$')
    if tonumber(untilMs) + SILENCE < nowMs then silent, id = channel, '' end
    call('PUBLISH', channel, 'e ' .. id)
    call('ZREM', waiters, last)
  end
  while true do
    local line = call('ZRANGE', waiters, 0, 1)
    local waiter, second = line[1], line[2]
    if not waiter then return '' end
    local channel, id = match(waiter, '^(.*)/(.*)$')
    if channel ~= silent and call('PUBLISH', channel, 'w ' .. id) > 0 then
      -- Should the first not come, the second does not wait for long.
      if second then
        channel, id = match(second, '^(.*)/(.*)$')
        call('PUBLISH', channel, 's ' .. id)
      end
      return ' R ' .. whole(nowMs + reserveMs) .. ' ' .. waiter
    end
    call('ZREM', waiters, waiter)
  end
end
