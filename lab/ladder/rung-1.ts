/**
 * Rung 1: SETNX takes the lock, DEL gives it back. Of all who ask, one gets it.
 *
 * Wrong with it: a holder that dies before DEL holds the lock for ever.
 */
import { hostname } from "node:os";
import type { Redis } from "ioredis";
import type { Lock } from "./lock.js";

export async function tryLock(redis: Redis, key: string): Promise<Lock | null> {
  const holder = `${hostname()}:${process.pid}`;
  if ((await redis.setnx(key, holder)) === 0) return null;
  return { unlock: () => redis.del(key) };
}
