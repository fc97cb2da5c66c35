import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needTransfer } from "../needs.js";
import { PROMPT_MS, until } from "../patience.js";

export const transferRevoked: Behaviour = {
  title: "who resumed a lease is told of its revocation, at once where one place decides",
  needs: needTransfer,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    // At once: long before the first renewal. Nodes that vote tell a resumed lease by a renewal.
    const [ttlMs, toldMs] = context.traits.fifo
      ? [10 * PROMPT_MS, PROMPT_MS]
      : [context.ttl.renewedMs, context.ttl.renewedMs];
    const lease = await a.mutex("m").acquire({ transferable: true, ttlMs });
    const resumed = await b.resume(lease.detach());
    assert.ok(resumed);
    const { signal, token } = resumed;
    assert.equal(await a.revoke("m", { token, reason: "test" }), true);
    await until("the loss is told", () => signal.aborted, toldMs);
    assert.throws(() => resumed.assertHeld(), { code: "HF_LEASE_LOST" });
    assert.equal(await resumed.release(), false);
  },
};
