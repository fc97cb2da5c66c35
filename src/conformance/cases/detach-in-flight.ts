import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needTransfer } from "../needs.js";
import { until } from "../patience.js";

export const detachInFlight: Behaviour = {
  title: "to detach one lease disturbs no other, also while renewals are under way",
  needs: needTransfer,
  async run(context) {
    const locks = await context.open({ ttlMs: context.ttl.renewedMs });
    const kept = await Promise.all(["a", "b", "c"].map((name) => locks.mutex(name).acquire()));
    const lease = await locks.mutex("m").acquire({ transferable: true });
    const renewing = lease.renew();
    lease.detach();
    await renewing;
    await lease.renew();
    await until("a ttl is over", () => lease.state === "lost", 2 * context.ttl.renewedMs);
    for (const other of kept) other.assertHeld();
    assert.equal(locks.held().length, 3);
  },
};
