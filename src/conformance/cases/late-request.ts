import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PATIENCE_MS, within } from "../patience.js";

export const lateRequest: Behaviour = {
  title: "a copy of an acquire that arrives after its lease was released holds nothing",
  needs: needFaults("keepBack"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const other = await context.open();
    await (await locks.mutex("warm").acquire()).release();
    const late = await faults.keepBack("acquire");
    const acquiring = locks.mutex("m").acquire();
    await within(PATIENCE_MS, "the request is kept back", late.struck);
    const lease = await within(PATIENCE_MS, "it is sent once more", acquiring);
    assert.equal(await lease.release(), true);
    await within(PATIENCE_MS, "the copy arrives", late.deliver());
    assert.deepEqual((await other.inspect("m")).holders, []);
    const next = await other.mutex("m").tryAcquire();
    assert.ok(next, "no ghost holds the lock");
  },
};
