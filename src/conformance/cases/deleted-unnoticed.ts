import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { needWipe } from "../needs.js";

export const deletedUnnoticed: Behaviour = {
  title: "a loss that nobody noticed is found by the release, and run tells it",
  needs: needWipe,
  async run(context) {
    const locks = await context.open();
    const lease = await locks.mutex("m").acquire();
    // Leases are long: no renewal comes between.
    const running = locks.mutex("other").run(async () => {
      await context.wipe();
      return "done";
    });
    await assert.rejects(running, (error) => {
      assert.ok(error instanceof LeaseLostError);
      assert.equal(error.value, "done");
      return true;
    });
    assert.equal(await lease.release(), false);
    assert.equal(lease.state, "lost");
    assert.equal(lease.signal.aborted, true);
  },
};
