import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needTransfer } from "../needs.js";
import { until } from "../patience.js";

export const transferWhileOpen: Behaviour = {
  title: "a detached lease that another client renews outlives its deadline in the first",
  needs: needTransfer,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const { renewedMs } = context.ttl;
    const lease = await a.mutex("m").acquire({ transferable: true, ttlMs: renewedMs });
    const resumed = await b.resume(lease.detach());
    assert.ok(resumed);
    await until("its deadline in the first client is past", () => lease.state === "lost");
    // A request of the first client that would end it is answered before this one.
    assert.equal(await a.mutex("m").tryAcquire(), null);
    await resumed.renew();
    assert.equal(await resumed.release(), true);
  },
};
