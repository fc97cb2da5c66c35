import assert from "node:assert/strict";
import { StoreError } from "../../errors.js";
import { altered } from "../altered.js";
import type { Behaviour } from "../behaviour.js";
import { until } from "../patience.js";

export const renewalRetried: Behaviour = {
  title: "a renewal that fails once and recovers keeps the lease",
  async run(context) {
    const store = await context.openStore();
    let calls = 0;
    const failing = altered(store, {
      async renew(grants) {
        calls += 1;
        if (calls === 1) throw new StoreError("lost on the way", { outcome: "unknown" });
        if (calls > 2) return store.renew(grants);
        return grants.map(() => ({ type: "unknown", error: new Error("unclear") }));
      },
    });
    const [a, b] = [context.bind(failing), await context.open()];
    const lease = await a.mutex("m").acquire({ ttlMs: 3 * context.ttl.renewedMs });
    const firstMs = performance.now() + lease.remainingMs();
    await until("it was tried again", () => calls > 2);
    await until("the first deadline is past", () => performance.now() > firstMs);
    lease.assertHeld();
    assert.equal(lease.signal.aborted, false);
    assert.equal(await b.mutex("m").tryAcquire(), null);
    assert.equal(await lease.release(), true);
  },
};
