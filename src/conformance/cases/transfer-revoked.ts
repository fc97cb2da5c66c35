import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needTransfer } from "../needs.js";
import { PROMPT_MS, until } from "../patience.js";

export const transferRevoked: Behaviour = {
  title: "who resumed a lease is told of its revocation at once",
  needs: needTransfer,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    // The first lease may be told of by a look at the store as the client begins to listen, the
    // second one only by a message. At once: long before the first renewal.
    for (const name of ["first", "second"]) {
      const lease = await a.mutex(name).acquire({ transferable: true, ttlMs: 10 * PROMPT_MS });
      const resumed = await b.resume(lease.detach());
      assert.ok(resumed);
      const { signal, token } = resumed;
      assert.equal(await a.revoke(name, { token, reason: "test" }), true);
      await until("the loss is told", () => signal.aborted, PROMPT_MS);
      assert.throws(() => resumed.assertHeld(), { code: "HF_LEASE_LOST" });
      assert.equal(await resumed.release(), false);
    }
  },
};
