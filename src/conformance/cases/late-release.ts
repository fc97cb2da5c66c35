import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, within } from "../patience.js";

export const lateRelease: Behaviour = {
  title: "a copy of a release that arrives late leaves the successor intact",
  needs: needFaults("keepBack"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const other = await context.open();
    const lease = await locks.mutex("m").acquire();
    const late = await faults.keepBack("release");
    const releasing = lease.release();
    await within(PATIENCE_MS, "the release is kept back", late.struck);
    assert.equal(await within(PATIENCE_MS, "it is sent once more", releasing), true);
    const successor = await within(PROMPT_MS, "the lock is free", other.mutex("m").acquire());
    await within(PATIENCE_MS, "the copy arrives", late.deliver());
    assert.equal(await locks.mutex("m").tryAcquire(), null);
    successor.assertHeld();
    assert.equal(await successor.release(), true);
  },
};
