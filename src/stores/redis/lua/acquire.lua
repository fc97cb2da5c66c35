-- Grants locks that are free; queues the owners that wait for the others.
--
-- KEYS[1]  the register
-- ARGV     names; a command for each name; flags, if any
--          command: how (1 letter), notAfter, seen (16 digits each), REQUEST; or `"` owner and a
--          space: as the last command, for another owner
--          how: x e s, the letter of the request; a capital may wait; p: would wait, with an offer
--          window or a heartbeat out of bounds; u: terms out of bounds
-- Result   the time alone: one lock, granted with the time as its token. Otherwise a list: the
--          time, a reply for each command (those of one letter each as one text), the run id
--   G[token]           granted: without a token, it has the one after the last grant of this call
--   g token span left  granted before      M token left meta  a mark
--   Q ahead [holder]   waits               B [holder]         busy
--   L late   E ended   Ut Us Ul refused: terms, seen, tokens   ! error
--- @include "clock"

local LAST = '9007199254739967'

-- One free lock: the path of most calls. One in 32 goes on, to look for expired names.
if count == 2 or count == 3 then
  local name, command = ARGV[1], ARGV[2]
  local how = byte(command)
  known = call('HMGET', R, '', name)
  local last, seen = known[1] or '', sub(command, 18, 33)
  if (how == 88 or how == 120) and not known[2] and nowText <= sub(command, 2, 17)
    and (last == '' or #last == 16) and (seen < nowText or seen <= last) then
    -- The numbers of this second are short, so they cost little.
    local token, low, span = nowText, micros, sub(command, 50, 53)
    if last >= nowText then
      low = sub(last, 1, 10) == seconds and (tonumber(sub(last, 11)) or 1e6) + 1
      token = low and low < 1e6 and seconds .. format('%06d', low)
    end
    local top = token
    if token and span ~= '0001' then
      low = low + span - 1
      top = low < 1e6 and #seconds == 10 and seconds .. format('%06d', low)
    end
    if top and token > last and token <= LAST then
      local entry = 'H' .. nowText .. nowText .. token .. sub(command, 34)
      if type(try('HSET', R, name, entry, '', top)) == 'number' then
        if micros % 32 == 0 and flags % 2 == 0 then
--- @include "sweep"
        end
        if token == nowText and not run then return nowText end
        return { nowText, token == nowText and 'G' or 'G' .. token, run }
      end
    end
  end
end

--- @include "digits"

-- One mutex whose exclusive holder is not the owner: one more waits for it.
if count == 2 and byte(ARGV[2]) == 88 and known[2] and byte(known[2]) ~= 72 and known[2] ~= 'F' then
  local name, command, last, text = ARGV[1], ARGV[2], known[1] or '', known[2]
  local owner, id = match(command, '^(%S+) (%S+) ', 87)
  local length = byte(text) == 79 and sub(text, 70, 85) or sub(text, 50, 65)
  local now, key, seen = tonumber(nowText), R .. ':' .. name, sub(command, 18, 33)
  if owner and match(text, '^[QO]%d+()[xes]%S+ ') == 102
    and sub(text, 2, 17) + length > now and sub(text, 103, 103 + #owner) ~= owner .. ' '
    and nowText <= sub(command, 2, 17) and #last == 16 and last < LAST and seen <= last then
    local found = try('HMGET', key, 'k', 'o' .. owner, 'c' .. id)
    local times, waiting, place, next = match(found[1] or '', '^(%d+) (%d+) (%d+) (%d+)$')
    local heartbeat, base, own = sub(command, 70, 85), place, '0'
    local gone, isNew = digits(now + 3 * heartbeat), not found[3]
    if not isNew then
      local before = nil
      before, base, own = match(found[3], '^a(%d+) (%d+) (%d+)$')
      if not own or sub(before, 17) ~= heartbeat or sub(before, 1, 16) > gone then place = nil end
    end
    -- Nobody is silent, nobody was released with a tombstone, and all keys stay long enough.
    if times and place and not found[2] and waiting ~= '0' and sub(times, 1, 16) > nowText
      and gone <= sub(times, 17, 32) and sub(times, 33) <= nowText
      and (not isNew or sub(times, 1, 16) < LAST) and call('EXISTS', R .. 'q:' .. name) == 1 then
      local spot, bound = place + 1, sub(times, 1, 16)
      local added = try('ZADD', R .. 'q:' .. name, spot, nowText .. sub(command, 34))
      if type(added) == 'number' then
        if isNew then
          call('ZADD', R .. 'g:' .. name, gone, id)
          if gone < bound then bound = gone end
        end
        local sums = bound .. sub(times, 17) .. ' ' .. waiting + 1 .. ' ' .. spot .. ' ' .. next
        local client = 'a' .. gone .. heartbeat .. ' ' .. base .. ' ' .. own + 1
        call('HSET', key, 'k', sums, 'o' .. owner, spot, 'c' .. id, client)
        return { nowText, 'Q' .. waiting .. ' ' .. text }
      end
    end
  end
end

--- @include "rules"
-- The reply; behind a grant, the token that follows it. An owner that ended is refused by its
-- tombstone until none of its requests can be under way.
local function acquire(state, command, asked, how)
  if nowText > sub(command, 2, 17) then return 'L' end
  if tombstoneOf(state, asked.owner) then return 'E' end
  if not learn(tonumber(sub(command, 18, 33))) then return 'Us' end
  local mine, mark = holderOf(state, asked.owner), state.mark
  if mine then
    if not mine.confirmed then extend(state, mine, sub(mine.text, 50, 65)) end
    return 'g' .. tokenOf(mine) .. ' ' .. spanOf(mine) .. format(' %.0f', mine.expiry - now)
  end
  if mark then return 'M' .. mark.token .. format(' %.0f ', mark.keptUntil - now) .. mark.meta end
  if waiterOf(state, asked.owner) then return 'Q-' .. blockage(state) end
  local token = nextToken()
  if not token then return 'Ul' end
  if fits(state, asked) then
    local first, isUnknown = head(state)
    if not first and not isUnknown then
      local text = tokenText(token)
      grant(state, asked, token, text, true)
      return token == follow and 'G' or 'G' .. text, token + sub(asked.request, 17, 20)
    end
  end
  if how == 'p' then return 'Ut' end
  if how == 'x' or how == 'e' or how == 's' then return 'B' .. blockage(state) end
  return 'Q' .. enqueue(state, asked) .. blockage(state)
end

-- The terms of the last command that was spelled out; whether it may be granted what is free.
local before, after, terms, isTimely, refused = '', '', '', nil, nil
local start = 'H' .. nowText .. nowText

local function spell(command)
  before, after = sub(command, 1, 86), sub(command, find(command, ' ', 87, true) or 87)
  local how = byte(command)
  terms, isTimely = sub(before, 34), (how == 88 or how == 120) and nowText <= sub(before, 2, 17)
    and sub(before, 18, 33) < nowText
end

return answer(function(name, command, text)
  -- The error of a server that lets no script write comes before the first write.
  if refused == nil then
    local answered = try('HSETNX', R, '', '0')
    refused = type(answered) == 'table' and answered.err or false
  end
  if refused then return '!' .. refused end
  local isDitto = byte(command) == 34
  if not isDitto then spell(command) end
  local token = isTimely and not text and nextToken()
  if not token then return nil end
  local digitsOf = tokenText(token)
  local owner = isDitto and sub(command, 2, -2) .. after or sub(command, 87)
  texts[name] = start .. digitsOf .. terms .. owner
  local isNext = token == follow
  follow = token + sub(terms, 17, 20)
  raise(follow - 1)
  return isNext and 'G' or 'G' .. digitsOf
end, function(name, command)
  if byte(command) == 34 then command = before .. sub(command, 2, -2) .. after end
  local asked = parse(sub(command, 34))
  local how = sub(command, 1, 1)
  if not asked then return 'Ut' end
  local state = open(name, asked.owner, asked.client)
  local reply, nextFollow = 'Ut', nil
  if how ~= 'u' then reply, nextFollow = acquire(state, command, asked, how) end
  reply = save(state, reply)
  -- Not before: if the command fails, its client does not count on from this token.
  follow = nextFollow or follow
  return reply
end)
