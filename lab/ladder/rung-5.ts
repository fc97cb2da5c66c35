/**
 * Rung 5: a watchdog renews the lock every third of its expiry, for as long as the work takes.
 *
 * Wrong with it: a process that is stopped, or whose event loop is blocked, renews nothing. The
 * lock expires, the next holder works, and the program goes on where it was.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { Lock } from "./lock.js";

const COMPARE_AND_DELETE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';
const COMPARE_AND_EXPIRE =
  'if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end ' +
  'return redis.call("pexpire", KEYS[1], ARGV[2])';

export async function tryLock(redis: Redis, key: string, ttlMs: number): Promise<Lock | null> {
  const value = randomUUID();
  const isSet = (await redis.set(key, value, "PX", ttlMs, "NX")) !== null;
  if (!isSet && (await redis.get(key)) !== value) return null;

  const renew = async (): Promise<void> => {
    const renewed = await redis.eval(COMPARE_AND_EXPIRE, 1, key, value, ttlMs);
    if (renewed === 0) clearInterval(watchdog);
  };
  // A renewal that fails is repeated by the next one.
  const watchdog = setInterval(() => renew().catch(() => undefined), ttlMs / 3);
  return {
    unlock: () => {
      clearInterval(watchdog);
      return redis.eval(COMPARE_AND_DELETE, 1, key, value);
    },
  };
}
