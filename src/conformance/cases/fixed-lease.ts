import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, until } from "../patience.js";

export const fixedLease: Behaviour = {
  title: "with renew: false the lease lasts for its ttl and no longer",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const { shortMs } = context.ttl;
    const askedMs = performance.now();
    const lease = await a.mutex("m").acquire({ ttlMs: shortMs, renew: false });
    const { signal } = lease;
    const startMs = performance.now();
    // A busy machine may see the end late, so the deadline counts, too.
    const lastsMs = startMs - askedMs + lease.remainingMs();
    assert.ok(lastsMs >= shortMs * 0.9 - 20, `the lease of ${shortMs} ms is for ${lastsMs} ms`);
    await until("the signal aborts", () => signal.aborted, shortMs + PROMPT_MS);
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs >= shortMs * 0.9 - 20, `the lease of ${shortMs} ms ended after ${tookMs} ms`);
    assert.equal(signal.reason.reason, "expired");
    await context.untilFree(b, "m", shortMs + PROMPT_MS);
  },
};
