/**
 * Rung 3: the value is random, and a script deletes the key only if it has that value.
 *
 * Wrong with it: if the reply to SET is lost, the lock is taken and the program does not know it.
 * The client sends SET again, is told that the key exists, and waits for itself until the expiry.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { Lock } from "./lock.js";

const COMPARE_AND_DELETE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';

export async function tryLock(redis: Redis, key: string, ttlMs: number): Promise<Lock | null> {
  const value = randomUUID();
  if ((await redis.set(key, value, "PX", ttlMs, "NX")) === null) return null;
  return { unlock: () => redis.eval(COMPARE_AND_DELETE, 1, key, value) };
}
