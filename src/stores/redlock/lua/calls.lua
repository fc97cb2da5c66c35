-- Runs one verb about one name, or the verb `renew` for many leases. The answer to `renew` is a
-- list with one answer for each lease. When the verb fails for a lease, the answer of that lease is
-- `E` with the error, and the next lease follows. The word `user_script` tells that the verb may
-- have written before it failed. All leases share the first key, which `renew` does not use on a
-- lone server.
local function run(KEYS, ARGV)
  include('node')
  include('verbs')
end
if ARGV[1] ~= 'renew' then return run(KEYS, ARGV) end
local answers = {}
for at = 1, (#KEYS - 1) / 2 do
  local owner, token, span, ttlMs = unpack(ARGV, 4 * at, 4 * at + 3)
  local isDone, answer = pcall(run, { KEYS[1], KEYS[2 * at], KEYS[2 * at + 1] },
    { 'renew', ARGV[2], owner, token, span, ttlMs, ARGV[3] })
  if not isDone then
    local said = type(answer) == 'table' and answer.err or answer
    answer = { 'E', tostring(said) .. ' (user_script)' }
  end
  answers[at] = answer
end
return answers
