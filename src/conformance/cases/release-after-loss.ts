import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

export const releaseAfterLoss: Behaviour = {
  title: "a release after the loss returns false and leaves the successor alone",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const lost = await a.mutex("m").acquire({ ttlMs: context.ttl.shortMs, renew: false });
    const successor = await b.mutex("m").acquire();
    assert.equal(await lost.release(), false);
    assert.equal(await lost.release(), false);
    assert.equal(lost.state, "lost");
    await assert.rejects(lost.renew(), { code: "HF_LEASE_LOST" });
    assert.equal(await a.mutex("m").tryAcquire(), null, "the successor holds it still");
    successor.assertHeld();
    assert.equal(await successor.release(), true);
  },
};
