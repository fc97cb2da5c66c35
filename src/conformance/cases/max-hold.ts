import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { PATIENCE_MS, PROMPT_MS, until } from "../patience.js";

export const maxHold: Behaviour = {
  title: "with maxHoldMs the lease ends in its time and the lock is free at once",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const maxHoldMs = 300;
    const startMs = performance.now();
    const lease = await a.mutex("m").acquire({ maxHoldMs });
    assert.ok(lease.remainingMs() <= maxHoldMs);
    const { signal } = lease;
    await until("the signal aborts", () => signal.aborted, PATIENCE_MS);
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs >= maxHoldMs - 2 && tookMs < maxHoldMs + PROMPT_MS, `after ${tookMs} ms`);
    assert.ok(signal.reason instanceof LeaseLostError);
    assert.equal(signal.reason.reason, "max_hold");
    assert.equal(await lease.release(), false);
    await context.untilFree(b, "m", PROMPT_MS);
  },
};
