import { randomUUID } from "node:crypto";
import type { Holdfast } from "../holdfast.js";

const strict = { fairness: "strict" } as const;

/**
 * Hands a lock over within one client. A store may pass over whoever it cannot reach, and a client
 * that was just opened may not be listening yet: after this it is.
 */
export async function warmUp(locks: Holdfast): Promise<void> {
  const lock = locks.mutex(randomUUID());
  const held = await lock.acquire(strict);
  const waiting = lock.acquire(strict);
  await held.release();
  await (await waiting).release();
}
