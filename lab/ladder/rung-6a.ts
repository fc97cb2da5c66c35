/**
 * Rung 6a: WAIT makes sure that a replica has the lock before the program believes in it. And the
 * program compares a clock before each step, so that it stops after a pause.
 *
 * Wrong with it: WAIT counts the replicas that have the writes of its own connection. A WAIT that
 * the client repeats on a new connection counts replicas of a server that never saw the SET. And a
 * failover may promote another replica than the one that was counted.
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
  const unlock = (): Promise<unknown> => redis.eval(COMPARE_AND_DELETE, 1, key, value);
  let heldUntilMs = performance.now() + ttlMs;
  const isSet = (await redis.set(key, value, "PX", ttlMs, "NX")) !== null;
  if (!isSet && (await redis.get(key)) !== value) return null;
  if ((await redis.wait(1, ttlMs / 10)) < 1) {
    await unlock();
    throw new Error("no replica has the lock");
  }

  const renew = async (): Promise<void> => {
    const sentMs = performance.now();
    // A renewal after the end could come after the next holder's time, too.
    if (sentMs >= heldUntilMs) return clearInterval(watchdog);
    const renewed = await redis.eval(COMPARE_AND_EXPIRE, 1, key, value, ttlMs);
    if (renewed === 1) heldUntilMs = sentMs + ttlMs;
  };
  const watchdog = setInterval(() => renew().catch(() => undefined), ttlMs / 3);
  return {
    isHeld: () => performance.now() < heldUntilMs,
    unlock: () => {
      clearInterval(watchdog);
      return unlock();
    },
  };
}
