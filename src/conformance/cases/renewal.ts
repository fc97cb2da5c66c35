import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { until } from "../patience.js";

export const renewal: Behaviour = {
  title: "a lease is renewed for as long as it is held",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const ttlMs = 3 * context.ttl.renewedMs;
    const lease = await a.mutex("m").acquire({ ttlMs });
    const endMs = (): number => performance.now() + lease.remainingMs();
    const firstMs = endMs();
    await until("a renewal moves the deadline", () => endMs() > firstMs + ttlMs / 10);
    await until("the first deadline is past", () => performance.now() > firstMs);
    lease.assertHeld();
    assert.ok(lease.remainingMs() <= ttlMs);
    assert.equal(await b.mutex("m").tryAcquire(), null);
    assert.equal(await lease.release(), true);
  },
};
