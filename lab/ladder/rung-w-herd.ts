/**
 * Rung W, the herd: a release is published, and wakes every process that waits.
 *
 * Wrong with it: all of them try, and one succeeds. With n waiters a handoff costs n requests, and
 * the nearest process goes first, not the one that has waited for the longest time. A message that
 * is lost wakes no one, so the program looks again after the expiry.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Redis } from "ioredis";
import type { Lock } from "./lock.js";

const COMPARE_AND_DELETE =
  'if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end ' +
  'redis.call("del", KEYS[1]) return redis.call("publish", KEYS[1] .. ":released", "")';

/** `messages` is a connection of its own, which is subscribed to `<key>:released`. */
export async function lock(
  redis: Redis,
  messages: Redis,
  key: string,
  ttlMs: number,
): Promise<Lock> {
  const value = randomUUID();
  for (;;) {
    // Listens before it tries: no message is missed between the two.
    const signal = AbortSignal.timeout(ttlMs);
    const released = once(messages, "message", { signal }).catch(() => undefined);
    if ((await redis.set(key, value, "PX", ttlMs, "NX")) !== null) break;
    await released;
  }
  return { unlock: () => redis.eval(COMPARE_AND_DELETE, 1, key, value) };
}
