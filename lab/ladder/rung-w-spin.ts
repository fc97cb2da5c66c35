/**
 * Rung W, spinning: the program tries, sleeps, and tries again until it has the lock.
 *
 * Wrong with it: every try costs a request, for as long as the lock is held. A lock that comes free
 * stays free until a process wakes up. And the order is that of luck: a process that is nearer to
 * the server, or that has just come, goes before one that has waited for long.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Lock } from "./lock.js";

const SLEEP_MS = 50;
const COMPARE_AND_DELETE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';

export async function lock(redis: Redis, key: string, ttlMs: number): Promise<Lock> {
  const value = randomUUID();
  while ((await redis.set(key, value, "PX", ttlMs, "NX")) === null) await sleep(SLEEP_MS);
  return { unlock: () => redis.eval(COMPARE_AND_DELETE, 1, key, value) };
}
