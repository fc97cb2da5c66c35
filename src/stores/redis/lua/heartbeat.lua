-- Keeps the places of a client that waits, and tells it the offers that it has.
--
-- KEYS[1]  the register
-- ARGV     names; for each name, the channel of the client; flags, if any
-- Result   a list: the time, a reply for each command, the run id
--   T waiters offers, then for each offer: owner token span granted window; then the holder that
--   expires first, if any. t: the same, and there is more: a heartbeat goes on   ! error
--- @include "clock"
--- @include "digits"
--- @include "rules"

return answer(nothing, function(name, client)
  local state = open(name, '', client, client)
  local found, parts = {}, {}
  if not state.holder then
    if state.count > 0 then found = shared().offers(state, client, SLICE + 1) end
  elseif not state.holder.confirmed and complete(state.holder).client == client then
    found = { state.holder }
  end
  for at = 1, math.min(#found, SLICE) do
    local holder, text = found[at], found[at].text
    if holder.expiry > now then
      local times = sub(text, 2, 17) .. ' ' .. sub(text, 70, 85)
      local span = spanOf(holder) .. ' '
      parts[#parts + 1] = ' ' .. holder.owner .. ' ' .. tokenOf(holder) .. ' ' .. span .. times
    end
  end
  local waiting, isMore = clientOf(state, client), #found > #parts
  local letter = (isMore or state.isBehind and state.waiting > 0) and 't' or 'T'
  local counts = (waiting and waiting.waiting or 0) .. ' ' .. #parts
  return save(state, letter .. counts .. table.concat(parts) .. blockage(state))
end)
