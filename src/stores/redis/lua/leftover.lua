-- Removes what an earlier life of a name left behind, as when the register was lost. What another
-- program keeps in one of the keys is not touched.
--
-- in:       call find sub refuse
-- commands: DEL EXISTS HGET ZRANGE
-- returns:  the function that removes it
return function(key, byExpiry, byPatience)
  local sums = call('HGET', key, 'k')
  local isHash = sums and #sums == 113 and find(sums, '^[-*]%d+$')
  if not isHash and call('EXISTS', key) == 1 then refuse(key) end
  local holder, client = call('ZRANGE', byExpiry, 0, 0)[1], call('ZRANGE', byPatience, 0, 0)[1]
  if holder and find(sub(holder, 1, 16), '%D') then refuse(byExpiry) end
  if client and not find(client, '{hf:', 1, true) then refuse(byPatience) end
  call('DEL', key, byExpiry, byPatience)
end
