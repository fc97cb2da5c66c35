-- The 16 digits of a time or a token. Most are of this very second. `%d` takes only 32 bits on some
-- platforms.
local base
local function digits(number)
  base = base or seconds * 1e6
  local low = number - base
  if low >= 0 and low < 1e6 and #seconds == 10 then return seconds .. format('%06d', low) end
  return format('%08d%08d', (number - number % 1e8) / 1e8, number % 1e8)
end
