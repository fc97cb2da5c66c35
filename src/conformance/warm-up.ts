import { randomUUID } from "node:crypto";
import type { Holdfast } from "../api/holdfast.js";

const strict = { fairness: "strict" } as const;

/**
 * Hands off a lock within one client. A store may pass over a waiter that its messages do not
 * reach, and a new client may not be subscribed yet. After this call it is subscribed.
 */
export async function warmUp(locks: Holdfast): Promise<void> {
  const lock = locks.mutex(randomUUID());
  const held = await lock.acquire(strict);
  const waiting = lock.acquire(strict);
  await held.release();
  await (await waiting).release();
}
