import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { until } from "../patience.js";

export const lateListener: Behaviour = {
  title: "who asks for the signal after the loss finds it aborted",
  async run(context) {
    const locks = await context.open();
    const options = { ttlMs: context.ttl.shortMs, renew: false };
    const lease = await locks.mutex("m").acquire(options);
    // State, signal and assertion are first asked for after the end: each must find out by itself.
    const other = await locks.mutex("other").acquire(options);
    await until("the lease ends", () => lease.state === "lost");
    assert.equal(lease.signal.aborted, true);
    assert.ok(lease.signal.reason instanceof LeaseLostError);
    assert.throws(() => lease.signal.throwIfAborted(), { code: "HF_LEASE_LOST" });
    await until("the other ends", () => other.remainingMs() === 0);
    assert.equal(other.signal.aborted, true);
    assert.throws(() => other.assertHeld(), { code: "HF_LEASE_LOST" });
  },
};
