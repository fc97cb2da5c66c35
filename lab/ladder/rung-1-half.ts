/**
 * Rung 1½: as rung 1, and EXPIRE frees the lock of a holder that died.
 *
 * Wrong with it: these are two commands. A holder that dies between them holds the lock for ever.
 */
import { hostname } from "node:os";
import type { Redis } from "ioredis";
import type { Lock } from "./lock.js";

export async function tryLock(redis: Redis, key: string, ttlMs: number): Promise<Lock | null> {
  const holder = `${hostname()}:${process.pid}`;
  if ((await redis.setnx(key, holder)) === 0) return null;
  await redis.pexpire(key, ttlMs);
  return { unlock: () => redis.del(key) };
}
