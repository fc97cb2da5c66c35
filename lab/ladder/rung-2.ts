/**
 * Rung 2: one command takes the lock and sets its expiry.
 *
 * Wrong with it: a DEL that comes after the expiry deletes the key of the next holder, and lets a
 * third one in beside it.
 */
import { hostname } from "node:os";
import type { Redis } from "ioredis";
import type { Lock } from "./lock.js";

export async function tryLock(redis: Redis, key: string, ttlMs: number): Promise<Lock | null> {
  const holder = `${hostname()}:${process.pid}`;
  if ((await redis.set(key, holder, "PX", ttlMs, "NX")) === null) return null;
  return { unlock: () => redis.del(key) };
}
