-- The reason why the commands on a name failed: a foreign key or field, or the error of the server.
--
-- in:       try register
-- commands: HGET TYPE ZRANGE
-- returns:  the function that gives it
local function isWrong(answer) return type(answer) == 'table' and answer.err ~= nil end

return function(name, failure)
  local key, said = register .. ':' .. name, failure
  if type(failure) == 'table' then
    if failure.where then return 'FOREIGN ' .. failure.where .. ' (lock ' .. name .. ')' end
    said = failure.err
  end
  -- The word `user_script` tells the client that the script may have written before it failed.
  if not string.find(said, 'WRONGTYPE') then
    return (string.match(said, '%u%u%u+ .*') or said) .. ' (user_script)'
  end
  if not isWrong(try('HGET', key, 'k')) then
    local letter = 'g:'
    for _, other in ipairs({ 'e:', 'u:' }) do
      if isWrong(try('ZRANGE', register .. other .. name, 0, 0)) then letter = other end
    end
    key = register .. letter .. name
  end
  -- Without the right to TYPE the reason names the key alone.
  local found = try('TYPE', key)
  return 'FOREIGN ' .. key .. (found.ok and ' (a ' .. found.ok .. ')' or '')
end
