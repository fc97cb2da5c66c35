import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PROMPT_MS, until, within } from "../patience.js";

/** A renewal is repeated after a quarter of the time left, and its answer takes a moment. */
const NOTICED_PART = 0.4;

export const renewalReplyLost: Behaviour = {
  title: "a renewal whose answer is lost is soon repeated, and keeps the lease",
  needs: needFaults("loseReply"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const other = await context.open();
    const ttlMs = 4 * context.ttl.renewedMs;
    const lease = await locks.mutex("m").acquire({ ttlMs });
    const deadlineMs = performance.now() + lease.remainingMs();
    const fault = await faults.loseReply("renew");
    await within(ttlMs + PROMPT_MS, "an answer is lost", fault.struck);
    const leftMs = deadlineMs - performance.now();
    const isRenewed = () => performance.now() + lease.remainingMs() > deadlineMs + ttlMs / 4;
    await until("the renewal is repeated", isRenewed, leftMs * NOTICED_PART);
    await until("the first deadline is past", () => performance.now() > deadlineMs);
    lease.assertHeld();
    assert.equal(await other.mutex("m").tryAcquire(), null);
    assert.equal(await lease.release(), true);
  },
};
