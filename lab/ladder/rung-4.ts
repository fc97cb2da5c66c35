/**
 * Rung 4: after a refusal the program reads the key. Its own value there means that an earlier SET
 * took the lock and that only the reply was lost.
 *
 * Wrong with it: the work may take longer than the expiry, and then two work. And a copy of SET
 * that the network delivers after the release takes the lock for no one.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { Lock } from "./lock.js";

const COMPARE_AND_DELETE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';

export async function tryLock(redis: Redis, key: string, ttlMs: number): Promise<Lock | null> {
  const value = randomUUID();
  const isSet = (await redis.set(key, value, "PX", ttlMs, "NX")) !== null;
  if (!isSet && (await redis.get(key)) !== value) return null;
  return { unlock: () => redis.eval(COMPARE_AND_DELETE, 1, key, value) };
}
