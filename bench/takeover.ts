import { once } from "node:events";
import type { Sample } from "./contest.js";
import { endWithParent, forked } from "./forked.js";
import type { Locker } from "./turns.js";

/** The waiter stands in line by then, and the holder has not renewed yet. */
const SETTLE_MS = 100;

/** A holder in a process of its own is killed: how long until who waits has the lock. */
export async function takeover(
  holder: URL,
  order: { readonly lock: string },
  locker: Locker,
): Promise<Sample> {
  const child = forked(holder, order);
  try {
    await once(child, "message");
    const waiting = locker.acquire(order.lock);
    waiting.catch(() => {});
    await new Promise((resume) => setTimeout(resume, SETTLE_MS));
    child.kill("SIGKILL");
    const killedMs = performance.now();
    const release = await waiting;
    const value = performance.now() - killedMs;
    await release();
    return { value };
  } finally {
    child.kill("SIGKILL");
    await locker.close();
  }
}

/** What such a process does: takes the lock, says so, and keeps it until it is killed. */
export async function holdForever(locker: Locker, lock: string): Promise<void> {
  endWithParent();
  await locker.acquire(lock);
  process.send?.("held");
  setInterval(() => {}, 1_000);
}
