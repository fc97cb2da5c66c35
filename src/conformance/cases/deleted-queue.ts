import type { Behaviour } from "../behaviour.js";
import { needWipe } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

export const deletedQueue: Behaviour = {
  title: "waiters whose places are deleted in the store ask again",
  needs: needWipe,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const { renewedMs } = context.ttl;
    await a.mutex("m").acquire();
    const waiting = b.mutex("m").acquire({ ttlMs: renewedMs });
    await context.untilWaiting(a, "m", 1);
    await context.wipe();
    const bound = 2 * renewedMs + PROMPT_MS;
    const lease = await within(bound, "the waiter finds the lock free", waiting);
    lease.assertHeld();
  },
};
