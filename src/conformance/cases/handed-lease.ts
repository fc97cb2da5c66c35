import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, until, within } from "../patience.js";

export const handedLease: Behaviour = {
  title: "a lease that a release handed over lasts as long as any other",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const { longMs } = context.ttl;
    for (const renew of [true, false]) {
      const held = await a.mutex("m").acquire();
      const waiting = b.mutex("m").acquire({ renew, ttlMs: longMs });
      await context.untilWaiting(a, "m", 1);
      await held.release();
      const lease = await within(PROMPT_MS, "the waiter is woken", waiting);
      const isLong = () => lease.remainingMs() > longMs * 0.8;
      await until("the lease is as long as was asked for", isLong, PROMPT_MS);
      const [holder] = (await a.inspect("m")).holders;
      if (holder) assert.ok(holder.remainingMs > longMs * 0.8);
      assert.equal(await lease.release(), true);
    }
  },
};
