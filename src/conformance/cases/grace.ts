import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { PATIENCE_MS, PROMPT_MS, until, within } from "../patience.js";

export const grace: Behaviour = {
  title: "with graceMs the signal aborts while the lease still holds",
  async run(context) {
    const locks = await context.open();
    const { renewedMs } = context.ttl;
    const graceMs = renewedMs * 0.45;
    const options = { ttlMs: renewedMs, graceMs, renew: false };
    const lease = await locks.mutex("m").acquire(options);
    const { signal } = lease;
    const atAbort = new Promise<{ state: string; remainingMs: number }>((resume) => {
      signal.addEventListener("abort", () => {
        resume({ state: lease.state, remainingMs: lease.remainingMs() });
      });
    });
    const { state, remainingMs } = await within(PATIENCE_MS, "the signal aborts", atAbort);
    assert.equal(state, "held");
    assert.ok(remainingMs > 0 && remainingMs <= graceMs, `${remainingMs} ms were left`);
    assert.ok(signal.reason instanceof LeaseLostError);
    await until("the lease ends", () => lease.state === "lost", renewedMs + PROMPT_MS);
  },
};
