-- Shows names: their holders, waiters and marks.
--
-- KEYS[1]  the register
-- ARGV     names; for each name, an empty command; flags, if any
-- Result   a list: the time, a reply for each name, the run id
--   a list: the mark (token, left, meta) or nothing; the holders by token, each an ENTRY; the
--   waiters by position, each a WAITER   ! error
--- @include "clock"
--- @include "digits"
--- @include "rules"

return answer(nothing, function(name)
  local state, held, waiting = open(name, '', ''), {}, {}
  local holders = { state.holder }
  if state.count > 0 then holders = shared().each(state) end
  for _, holder in ipairs(holders) do
    if holder.expiry > now then held[#held + 1] = holder.text end
  end
  if state.waiting > 0 then
    local members = call('ZRANGE', companion(state, 'q'), 0, -1, 'WITHSCORES')
    for at = 1, #members, 2 do
      local entry = waiterFrom(state, members[at], tonumber(members[at + 1]))
      if entry then waiting[#waiting + 1] = entry.text end
    end
  end
  local mark = state.mark
  local left = mark and mark.token .. format(' %.0f ', mark.keptUntil - now) .. mark.meta
  return save(state, { left or '', held, waiting })
end)
