import { StoreError } from "../../errors/index.js";
import type { Driver } from "./driver.js";

/**
 * Returns nothing, or the version of a server that does not know HRANDFIELD, which came with Redis
 * 6.2. A server that knows the command refuses a user without the right to call it in other words.
 */
const PROBE = `
local answer = redis.pcall('HRANDFIELD', KEYS[1])
if type(answer) ~= 'table' or not string.find(answer.err or '', 'nknown') then return false end
local info = redis.pcall('INFO', 'server')
return type(info) == 'string' and string.match(info, 'redis_version:(%S+)') or 'before 6.2'`;

/**
 * Rejects where the server of `key` is too old for the scripts of the stores: a script would fail
 * in the middle, after a write. The check comes before a script is sent in full. The server keeps
 * the script from then on, so a call by the hash runs only on a server that has passed.
 */
export async function checkVersion(driver: Driver, key: string, store: string): Promise<void> {
  const tooOld = await driver.send(key, "eval", [PROBE, "1", key]);
  if (!tooOld) return;
  throw new StoreError(
    `This server is Redis ${tooOld}: Redis 6.2 or newer, or Valkey, is needed.`,
    { outcome: "not_applied", retryable: false, store },
  );
}
