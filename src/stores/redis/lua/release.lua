-- Ends owners: releases what they hold, or takes them out of the queue. Serves the queue.
--
-- KEYS[1]  the register
-- ARGV     names; a command for each name; flags, if any
--          command: owner, a space; or a space, then until when a tombstone refuses the owner (0:
--          none), a space, for how long a mark stays (empty: none), a space, owner, a space, meta
-- Result   the time alone: one lock, held until now, for which nobody waits. Otherwise a list: the
--          time, a reply for each command (those of one letter each as one text), the run id
--   R S held   r s not held   S s: waiters are left to serve: a heartbeat goes on
--   behind it: for how long the next owner has an offer   ! error
--- @include "clock"

-- One lock that nobody waits for: the path of most calls.
local name, owner, text, flag, isHeld = ARGV[1], ARGV[2], nil, nil, nil
if count == 2 or count == 3 then
  text = call('HGET', R, name)
  flag = text and sub(text, 103, 102 + #owner) == owner and byte(text)
  if flag == 72 or flag == 81 then
    local ttl = sub(text, 50, 65)
    -- Granted in this second, for a second or more: no sum is needed.
    isHeld = sub(text, 2, 11) == seconds and ttl >= '0000000001000000' and ttl <= '3153600000000000'
      or (tonumber(sub(text, 2, 17)) or 0) + (tonumber(ttl) or 0) > seconds * 1e6 + micros
  end
  if isHeld and flag == 72 then
    call('HDEL', R, name)
    if run then return { nowText, 'R', run } end
    return nowText
  end
end

--- @include "digits"
-- One mutex whose first waiter gets it.
if isHeld and count == 2 then
  local key, queue = R .. ':' .. name, R .. 'q:' .. name
  local first = try('ZRANGE', queue, 0, 0, 'WITHSCORES')
  local member, position, start, id = first[1], first[2], nil, nil
  start, owner, id = match(member or '', '^%d+()x(%S+) (%S+) ')
  local found = start == 69 and try('HMGET', key, 'k', 'c' .. id) or {}
  local times, waiting, place, next = match(found[1] or '', '^(%d+) (%d+) (%d+) (%d+)$')
  local patience, base, own = match(found[2] or '', '^(a%d+) (%d+) (%d+)$')
  -- Nobody was passed over or is silent, and the first waiter counts.
  if own and times and next == '0' and waiting > '0' and sub(times, 1, 16) > nowText
    and tonumber(base) < tonumber(position) then
    local last = call('HGET', R, '') or ''
    local token = #last == 16 and not find(last, '%D') and (last < nowText and nowText
      or last < '9007199254739967' and digits(last + 1))
    if token then
      local span, offer = sub(member, 33, 36), sub(member, 37, 52)
      -- The delete comes first: where it is refused, no client hears of a grant.
      call('ZREM', queue, member)
      redis.set_repl(redis.REPL_NONE)
      local words = { 'g' .. owner, token, span, nowText, offer, name }
      local heard = try('PUBLISH', id, table.concat(words, ' '))
      redis.set_repl(redis.REPL_ALL)
      if heard == 0 or type(heard) == 'table' then
        call('ZADD', queue, position, member)
      else
        local entry, top = 'O' .. nowText .. nowText .. token .. sub(member, 17), token
        if span ~= '0001' then top = digits(token + span - 1) end
        local sums = times .. ' ' .. waiting - 1 .. ' ' .. place .. ' 0'
        if own == '1' then
          call('HDEL', key, 'o' .. owner, 'c' .. id)
          call('HSET', key, 'k', sums)
        else
          call('HDEL', key, 'o' .. owner)
          call('HSET', key, 'k', sums, 'c' .. id, patience .. ' ' .. base .. ' ' .. own - 1)
        end
        call('HSET', R, name, entry, '', top)
        return { nowText, 'R' .. offer }
      end
    end
  end
end

--- @include "rules"
return answer(function(name, command, text)
  if byte(command) == 32 then return nil end
  if not text then return 'r' end
  if byte(text) == 72 and sub(text, 103, 102 + #command) == command
    and numberOf(sub(text, 2, 17)) + numberOf(sub(text, 50, 65)) > now then
    texts[name] = false
    return 'R'
  end
end, function(name, command)
  local owner, tombstone, kept, meta = sub(command, 1, -2), nil, nil, nil
  if byte(command) == 32 then
    tombstone, kept, owner, meta = match(command, '^ (%d+) (%d*) (%S+) (.*)$')
  end
  local state = open(name, owner, '')
  tombstone = math.min(tonumber(tombstone or 0), now + LONGEST)
  if tombstone > now then putTombstone(state, owner, tombstone) end
  local held = holderOf(state, owner)
  local queued = not held and waiterOf(state, owner)
  if queued then
    call('ZREM', companion(state, 'q'), queued.text)
    dropWaiter(state, queued)
  end
  if held then
    dropHolder(state, held)
    if tonumber(kept) then
      local keptUntil = now + math.min(tonumber(kept), LONGEST)
      state.mark = { token = tokenOf(held), keptUntil = keptUntil, meta = meta }
      set(state, 'm', digits(keptUntil) .. tokenOf(held) .. meta)
      need(state, digits(keptUntil))
    end
  end
  if held or queued then serve(state) end
  local next, reply = nextToExpire(state), state.isBehind and state.waiting > 0 and 's' or 'r'
  if held then reply = string.upper(reply) end
  if next and not next.confirmed then
    reply = reply .. format('%.0f', math.max(0, next.expiry - now))
  end
  return save(state, reply)
end)
