/** Faults of the processes that wait. */
import { setTimeout as pause } from "node:timers/promises";
import { type Fault, ONE_TTL, takes } from "./fault.js";

export const farWaiter: Fault = {
  id: "far-waiter",
  title: "the first one that waits is far from the server",
  needsServer: true,
  processes: 3,
  stretch: 3,
  latest: 0.05,
  isOrdered: true,
  patience: ONE_TTL,
  exempts: ({ family, faults }) => {
    return family === "ladder" && !faults ? "its caller decides how it waits" : null;
  },
  async run(scene) {
    const { a, b, c, store, ttlMs } = scene;
    await takes(scene);
    const delayMs = Math.round(ttlMs / 10);
    store.links(b.lane).delayRequests(delayMs);
    b.happens("delayed", `requests take ${delayMs} ms`);
    const first = store.links(b.lane).answered();
    await b.asks();
    await first;
    const second = store.links(c.lane).answered();
    await c.asks();
    await second;
    // A process that spins has just been refused. One that queued sends nothing.
    await Promise.race([store.links(b.lane).answered(), pause(ttlMs / 4)]);
    await a.finishes();
  },
};
