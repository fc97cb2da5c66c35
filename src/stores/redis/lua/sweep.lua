-- One call in 32 looks for expired names in samples of the register, and takes larger samples as
-- long as it finds many: so the register does not grow with names that no owner released.
local many = math.max(4, math.floor(count / 2))
for _ = 1, 16 do
  local sample, dead = call('HRANDFIELD', R, many, 'WITHVALUES'), {}
  for at = 1, #sample, 2 do
    local name, text, isDead = sample[at], sample[at + 1], sample[at + 1] == 'F'
    if match(text, '^[HQO]%d+()[xes]%S+ ') == 102 then
      local length = byte(text) == 79 and sub(text, 70, 85) or sub(text, 50, 65)
      isDead = sub(text, 2, 17) + length <= tonumber(nowText)
    end
    if isDead and byte(text) ~= 72 then isDead = call('EXISTS', R .. ':' .. name) == 0 end
    if isDead then dead[#dead + 1] = name end
  end
  if dead[1] then call('HDEL', R, unpack(dead)) end
  if #dead * 4 < many then break end
  many = math.max(16, many)
end
