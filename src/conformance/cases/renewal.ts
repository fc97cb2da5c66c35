import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";

export const renewal: Behaviour = {
  title: "a lease is renewed for as long as it is held",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const { renewedMs } = context.ttl;
    const lease = await a.mutex("m").acquire({ ttlMs: renewedMs });
    await sleep(renewedMs * 1.5);
    lease.assertHeld();
    assert.ok(lease.remainingMs() <= renewedMs);
    assert.equal(await b.mutex("m").tryAcquire(), null);
    assert.equal(await lease.release(), true);
  },
};
