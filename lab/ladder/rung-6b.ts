/**
 * Rung 6b: Redlock as it was published. A majority of independent nodes grants the lock, for the
 * expiry less the time that it took to ask them, less an allowance for the drift of clocks.
 *
 * Wrong with it: a node that restarts without its data, or whose clock jumps, votes once more. Then
 * a second process has a majority while the first one still has its own.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { Lock } from "./lock.js";

const COMPARE_AND_DELETE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';
const COMPARE_AND_EXPIRE =
  'if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end ' +
  'return redis.call("pexpire", KEYS[1], ARGV[2])';

export async function tryLock(
  nodes: readonly Redis[],
  key: string,
  ttlMs: number,
): Promise<Lock | null> {
  const value = randomUUID();
  const nodeTimeoutMs = ttlMs / 10;
  /** Until when the lock is valid, by the votes of a majority; null without one. */
  const collect = async (vote: (node: Redis) => Promise<boolean>): Promise<number | null> => {
    const sentMs = performance.now();
    const silence = new Promise<boolean>((resolve) => setTimeout(resolve, nodeTimeoutMs, false));
    const votes = nodes.map((node) => Promise.race([vote(node).catch(() => false), silence]));
    const count = (await Promise.all(votes)).filter((isFor) => isFor).length;
    return count > nodes.length / 2 ? sentMs + ttlMs - (ttlMs / 100 + 2) : null;
  };
  const take = async (node: Redis): Promise<boolean> =>
    (await node.set(key, value, "PX", ttlMs, "NX")) !== null || (await node.get(key)) === value;
  const renew = async (node: Redis): Promise<boolean> =>
    (await node.eval(COMPARE_AND_EXPIRE, 1, key, value, ttlMs)) === 1;
  const unlock = (): Promise<unknown> =>
    collect(async (node) => (await node.eval(COMPARE_AND_DELETE, 1, key, value)) === 1);

  let validUntilMs = await collect(take);
  if (validUntilMs === null) {
    await unlock();
    return null;
  }
  const isHeld = (): boolean => validUntilMs !== null && performance.now() < validUntilMs;
  const extend = async (): Promise<void> => {
    if (!isHeld()) return clearInterval(watchdog);
    validUntilMs = (await collect(renew)) ?? validUntilMs;
  };
  const watchdog = setInterval(() => extend().catch(() => undefined), ttlMs / 3);
  return {
    isHeld,
    unlock: () => {
      clearInterval(watchdog);
      return unlock();
    },
  };
}
