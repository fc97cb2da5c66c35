import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

export const brokenWait: Behaviour = {
  title: "a waiter that was cut off when its turn came is served when it is back",
  needs: needFaults("cut", "heal"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const other = await context.open();
    const held = await other.mutex("m").acquire();
    const waiting = locks.mutex("m").acquire();
    await context.untilWaiting(other, "m", 1);
    await faults.cut();
    await held.release();
    await sleep(100);
    await faults.heal();
    // Whoever comes back asks what it missed, long before any backstop.
    const lease = await within(PROMPT_MS, "the waiter is served", waiting);
    assert.equal(await lease.release(), true);
  },
};
