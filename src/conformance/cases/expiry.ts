import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, within } from "../patience.js";

export const expiry: Behaviour = {
  title: "a lease that is not renewed ends, and the next waiter takes over with a higher token",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const { shortMs } = context.ttl;
    const startMs = performance.now();
    const first = await a.mutex("m").acquire({ ttlMs: shortMs, renew: false });
    const takeover = b.mutex("m").acquire();
    const next = await within(2 * shortMs + PROMPT_MS, "the waiter takes over", takeover);
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs >= shortMs * 0.95, `the lease of ${shortMs} ms was over after ${tookMs} ms`);
    assert.equal(first.state, "lost");
    assert.equal(first.remainingMs(), 0);
    assert.ok(next.token > first.token);
    next.assertHeld();
  },
};
