-- Removes what an earlier life of a name left behind, as when the register was lost. What another
-- program keeps in one of the keys is not touched.
--
-- in:       call find sub refuse
-- commands: EXISTS HGET UNLINK ZRANGE
-- returns:  the function that removes it
return function(key, byExpiry, offers, byPatience)
  local sums = call('HGET', key, 'k')
  local isHash = sums and #sums == 113 and find(sums, '^[-*]%d+$')
  if not isHash and call('EXISTS', key) == 1 then refuse(key) end
  local holder = call('ZRANGE', byExpiry, -1, -1)[1]
  if holder and find(sub(holder, 1, 16), '%D') then refuse(byExpiry) end
  for _, byClient in ipairs({ offers, byPatience }) do
    local client = call('ZRANGE', byClient, 0, 0)[1]
    if client and not find(client, '{hf:', 1, true) then refuse(byClient) end
  end
  call('UNLINK', key, byExpiry, offers, byPatience)
end
