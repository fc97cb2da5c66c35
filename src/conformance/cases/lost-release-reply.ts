import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PATIENCE_MS, within } from "../patience.js";

export const lostReleaseReply: Behaviour = {
  title: "a release whose answer is lost, retried after a successor, leaves the successor intact",
  needs: needFaults("loseReply"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const other = await context.open();
    const first = await locks.mutex("m").acquire();
    const waiting = other.mutex("m").acquire();
    await context.untilWaiting(other, "m", 1);
    const fault = await faults.loseReply("release");
    const releasing = first.release();
    await within(PATIENCE_MS, "the answer is lost", fault.struck);
    const successor = await within(PATIENCE_MS, "the successor is granted", waiting);
    assert.equal(await within(PATIENCE_MS, "the release ends", releasing), true);
    successor.assertHeld();
    const { holders } = await other.inspect("m");
    assert.deepEqual(
      holders.map(({ token }) => token),
      [successor.token],
    );
    assert.equal(await locks.mutex("m").tryAcquire(), null);
    assert.equal(await successor.release(), true);
  },
};
