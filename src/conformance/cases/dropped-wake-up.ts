import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, within } from "../patience.js";

export const droppedWakeUp: Behaviour = {
  title: "a wake-up that is lost on its way is made up for by the backstop",
  needs: needFaults("dropPush"),
  async run(context) {
    const holder = await context.open();
    const { locks, faults } = await context.openFaulty();
    const { renewedMs } = context.ttl;
    const held = await holder.mutex("m").acquire();
    const waiting = locks.mutex("m").acquire({ ttlMs: renewedMs });
    await context.untilWaiting(holder, "m", 1);
    const fault = await faults.dropPush();
    await held.release();
    await within(PATIENCE_MS, "the wake-up is lost", fault.struck);
    const lease = await within(2 * renewedMs + PROMPT_MS, "the waiter asks by itself", waiting);
    lease.assertHeld();
    assert.ok(lease.token > held.token);
    assert.equal(await lease.release(), true);
  },
};
