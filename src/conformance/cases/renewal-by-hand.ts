import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";

export const renewalByHand: Behaviour = {
  title: "renew by hand makes a lease last longer, never shorter",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const { renewedMs } = context.ttl;
    const lease = await a.mutex("m").acquire({ ttlMs: renewedMs, renew: false });
    await lease.renew(3 * renewedMs);
    assert.ok(lease.remainingMs() > 2 * renewedMs);
    await lease.renew(renewedMs);
    assert.ok(lease.remainingMs() > 1.5 * renewedMs, "a renewal does not shorten");
    await sleep(renewedMs * 1.2);
    lease.assertHeld();
    assert.equal(await b.mutex("m").tryAcquire(), null);
    assert.equal(await lease.release(), true);
  },
};
