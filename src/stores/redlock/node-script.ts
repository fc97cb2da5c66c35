import { createHash } from "node:crypto";
import { SCRIPT } from "./script.generated.js";

/**
 * The script of a node: one verb about one name, or the verb `renew` for many leases. `codec.ts`
 * writes the arguments. The answer to `renew` is a list with one answer for each lease. When the
 * verb fails for a lease, the answer of that lease is `E` with the error, and the next lease
 * follows.
 */
export const NODE_SCRIPT: string = `local function run(KEYS, ARGV)
${SCRIPT}
end
if ARGV[1] ~= 'renew' then return run(KEYS, ARGV) end
local answers = {}
for at = 1, (#KEYS - 1) / 2 do
  local owner, token, span, ttlMs = unpack(ARGV, 4 * at, 4 * at + 3)
  local isDone, answer = pcall(run, { KEYS[1], KEYS[2 * at], KEYS[2 * at + 1] },
    { 'renew', ARGV[2], owner, token, span, ttlMs, ARGV[3] })
  if not isDone then answer = { 'E', type(answer) == 'table' and answer.err or answer } end
  answers[at] = answer
end
return answers`;

const SHA = createHash("sha1").update(NODE_SCRIPT).digest("hex");

/** The arguments of a call of the script, by its hash. */
export function scriptCall(keys: readonly string[], args: readonly string[]): readonly string[] {
  return [SHA, `${keys.length}`, ...keys, ...args];
}
