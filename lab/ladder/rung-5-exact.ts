/**
 * Rung 5, as one of the articles has it: the watchdog renews every `ttlMs`, for `ttlMs`.
 *
 * Wrong with it: each renewal is sent when the lock expires, and comes after it.
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

  const renew = (): Promise<unknown> => redis.eval(COMPARE_AND_EXPIRE, 1, key, value, ttlMs);
  const watchdog = setInterval(() => renew().catch(() => undefined), ttlMs);
  return {
    unlock: () => {
      clearInterval(watchdog);
      return redis.eval(COMPARE_AND_DELETE, 1, key, value);
    },
  };
}
