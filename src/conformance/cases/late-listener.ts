import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { until } from "../patience.js";

export const lateListener: Behaviour = {
  title: "who asks only after the loss finds the signal aborted and the assertion failing",
  async run(context) {
    const locks = await context.open();
    const options = { ttlMs: context.ttl.shortMs, renew: false };
    const signalled = await locks.mutex("signalled").acquire(options);
    const asserted = await locks.mutex("asserted").acquire(options);
    const endMs = performance.now() + asserted.remainingMs();
    await until("the time of both is over", () => performance.now() > endMs);
    assert.equal(signalled.signal.aborted, true);
    assert.ok(signalled.signal.reason instanceof LeaseLostError);
    assert.throws(() => signalled.signal.throwIfAborted(), { code: "HF_LEASE_LOST" });
    assert.throws(() => asserted.assertHeld(), { code: "HF_LEASE_LOST" });
    assert.equal(asserted.state, "lost");
  },
};
