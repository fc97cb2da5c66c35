-- Renews leases, and confirms offers.
--
-- KEYS[1]  the register
-- ARGV     names; a command for each name; flags, if any
--          command: notAfter seen ttl (16 digits each; 16 dashes: a confirm of an offer,
--          for the ttl of its request), owner, a space, the channel of the client that resumed
--          the lease, if any; or `"` owner and a space: as the last command, for another owner
-- Result   a list: the time, a reply for each command, the run id
--   N token span         renewed for the ttl, and nobody waits
--   n left waiting token span: renewed    Om missing   Or replaced   Ov reason: revoked
--   L late   Ut refused: terms   ! error
--- @include "clock"
local CONFIRM, MAX_TEXT = '----------------', '3153600000000000'

-- One lock that somebody may wait for, confirmed by its exclusive holder.
if count == 2 and sub(ARGV[2], 33, 48) == CONFIRM then
  local name, owner = ARGV[1], sub(ARGV[2], 49)
  local text = call('HGET', R, name)
  if text and byte(text) == 79 and sub(text, 103, 102 + #owner) == owner
    and match(text, '^%d+()', 2) == 102 then
    local now, ttl, expiry = tonumber(nowText), sub(text, 50, 65), nil
    expiry = sub(text, 2, 17) + sub(text, 70, 85)
    local sums = try('HGET', R .. ':' .. name, 'k')
    local times, waiting = match(type(sums) == 'string' and sums or '', '^(%d+) (%d+) %d+ %d+$')
    -- Nobody is silent. The lease does not expire before the offer would have: the clock may have
    -- been set back since.
    if waiting and sub(times, 1, 16) > nowText and expiry > now and expiry <= now + ttl then
      if type(try('HSET', R, name, 'Q' .. nowText .. sub(text, 18))) == 'number' then
        local hasWaiters = waiting == '0' and ' 0 ' or ' 1 '
        local reply = 'n' .. ttl .. hasWaiters .. sub(text, 34, 49) .. ' ' .. sub(text, 66, 69)
        return { nowText, reply }
      end
    end
  end
end

--- @include "digits"
--- @include "rules"
local function renew(state, owner, ttl, resumedBy)
  local holder = holderOf(state, owner)
  if not holder then
    local old = tombstoneOf(state, owner)
    if old and old.reason then return 'Ov' .. old.reason end
    return state.holder and 'Or' or 'Om'
  end
  if ttl ~= CONFIRM then
    extend(state, holder, ttl)
  elseif not holder.confirmed then
    extend(state, holder, sub(holder.text, 50, 65))
  end
  if resumedBy ~= '' then
    -- From now on messages go to the channel of the client that resumed the lease.
    local stop = select(2, find(holder.text, '^%S+ %S+', 103))
    local parties = owner .. ' ' .. resumedBy
    holder.text = sub(holder.text, 1, 102) .. parties .. sub(holder.text, stop + 1)
    if holder ~= state.holder then set(state, 'h' .. owner, holder.text) end
  end
  local waiting = state.waiting > 0 and ' 1 ' or ' 0 '
  local times = format('n%.0f', holder.expiry - now) .. waiting
  return times .. tokenOf(holder) .. ' ' .. spanOf(holder)
end

local owner, resumedBy, seen, ttl, isLate, ends = nil, '', 0, CONFIRM, nil, 0
return answer(function(name, command, text)
  if byte(command) == 34 then
    owner = sub(command, 2)
  else
    owner, resumedBy = match(command, '^(%S+ )(%S*)$', 49)
    seen, ttl = tonumber(sub(command, 17, 32)), sub(command, 33, 48)
    isLate = nowText > sub(command, 1, 16)
    ends = ttl == CONFIRM and 0 or now + ttl
  end
  -- A lock that nobody waits for.
  if not text or byte(text) ~= 72 or sub(text, 103, 102 + #owner) ~= owner then return nil end
  if resumedBy ~= '' or isLate or ttl > MAX_TEXT then return nil end
  local expiry = numberOf(sub(text, 2, 17)) + numberOf(sub(text, 50, 65))
  if expiry <= now or expiry > ends then return nil end
  learn(seen)
  texts[name] = 'H' .. nowText .. sub(text, 18, 49) .. ttl .. sub(text, 66)
  return 'N' .. sub(text, 34, 49) .. sub(text, 66, 69)
end, function(name)
  owner = sub(owner, 1, -2)
  local state = open(name, owner, '')
  if ttl ~= CONFIRM then
    if ttl > MAX_TEXT then return save(state, 'Ut') end
    if isLate then return save(state, 'L') end
    learn(seen)
  end
  return save(state, renew(state, owner, ttl, resumedBy))
end)
