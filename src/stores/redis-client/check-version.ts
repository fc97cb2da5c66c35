import { StoreError } from "../../errors.js";
import type { Driver } from "./driver.js";

/**
 * Answers nothing, or the version of a server that does not know HRANDFIELD, which came with Redis
 * 6.2. A user without the right to call it is told so only where the server knows the command.
 */
const PROBE = `
local answer = redis.pcall('HRANDFIELD', KEYS[1])
if type(answer) ~= 'table' or not string.find(answer.err or '', 'nknown') then return false end
local info = redis.pcall('INFO', 'server')
return type(info) == 'string' and string.match(info, 'redis_version:(%S+)') or 'before 6.2'`;

/**
 * Rejects where the server of `key` is too old for the scripts of the stores: one of them would
 * fail in the middle, after a write. It is asked before a script is sent in full. A server keeps
 * the script from then on, so that a call by the hash runs only on a server that has passed.
 */
export async function checkVersion(driver: Driver, key: string, store: string): Promise<void> {
  const tooOld = await driver.send(key, "eval", [PROBE, "1", key]);
  if (!tooOld) return;
  throw new StoreError(
    `This server is Redis ${tooOld}: Redis 6.2 or newer, or Valkey, is needed.`,
    { outcome: "not_applied", retryable: false, store },
  );
}
