-- Takes leases away by their tokens, and removes marks. Tells the client of the holder, and serves
-- the queue.
--
-- KEYS[1]  the register
-- ARGV     names; for each name: token, a space, reason; flags, if any
-- Result   a list: the time, a reply for each command, the run id
--   V1 done   V0 there is no such lease   ! error
--- @include "clock"
--- @include "digits"
--- @include "rules"

return answer(nothing, function(name, command)
  local token, reason = match(command, '^(%d+) (.*)$')
  local state, number = open(name, '', ''), tonumber(token)
  if state.mark and tonumber(state.mark.token) == number then
    dropMark(state)
    return save(state, 'V1')
  end
  local holder = state.holder
  if holder then
    local first = tokenOf(holder) + 0
    if number < first or number >= first + spanOf(holder) then holder = nil end
  elseif state.count > 0 then
    holder = shared().with(state, number)
  end
  if not holder or holder.expiry <= now then return save(state, 'V0') end
  local client, owner = complete(holder).client, holder.owner
  dropHolder(state, holder)
  putTombstone(state, owner, holder.expiry, reason)
  pushNews(state, client, 'v', owner, tokenOf(holder), reason)
  serve(state)
  return save(state, 'V1')
end)
