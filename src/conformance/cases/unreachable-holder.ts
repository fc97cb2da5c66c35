import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { until } from "../patience.js";

export const unreachableHolder: Behaviour = {
  title: "a lease survives a silence of the store that ends before its deadline",
  needs: needFaults("cut", "heal"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const ttlMs = 5 * context.ttl.renewedMs;
    const lease = await locks.mutex("m").acquire({ ttlMs });
    const deadlineMs = performance.now() + lease.remainingMs();
    await faults.cut();
    // The first renewal is due after a third of the ttl, and fails.
    await until("a renewal was due", () => lease.remainingMs() < ttlMs * 0.6);
    await faults.heal();
    await until("the first deadline is past", () => performance.now() > deadlineMs);
    lease.assertHeld();
    assert.equal(lease.signal.aborted, false);
    assert.equal(await lease.release(), true);
  },
};
