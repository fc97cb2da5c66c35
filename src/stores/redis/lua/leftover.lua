-- Removes the keys that an earlier life of a name left, as after the register was lost. If one of
-- these keys belongs to another program, the command is refused and none of them is removed.
--
-- in:       call find sub refuse
-- commands: EXISTS HGET UNLINK ZRANGE
-- returns:  the function that removes them
return function(key, byExpiry, offers, bySilence)
  local sums = call('HGET', key, 'k')
  local isHash = sums and #sums == SUMS.length and find(sums, '^[-*]%d+$')
  if not isHash and call('EXISTS', key) == 1 then refuse(key) end
  local holder = call('ZRANGE', byExpiry, -1, -1)[1]
  if holder and find(sub(holder, BY_EXPIRY.token), '%D') then refuse(byExpiry) end
  for _, byClient in ipairs({ offers, bySilence }) do
    local client = call('ZRANGE', byClient, 0, 0)[1]
    if client and not find(client, '{hf:', 1, true) then refuse(byClient) end
  end
  call('UNLINK', key, byExpiry, offers, bySilence)
end
