import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PROMPT_MS, until, within } from "../patience.js";

export const renewalReplyLost: Behaviour = {
  title: "a renewal whose answer is lost keeps the lease",
  needs: needFaults("loseReply"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const other = await context.open();
    const { renewedMs } = context.ttl;
    const lease = await locks.mutex("m").acquire({ ttlMs: renewedMs });
    const deadlineMs = performance.now() + lease.remainingMs();
    const fault = await faults.loseReply("renew");
    await within(renewedMs + PROMPT_MS, "an answer is lost", fault.struck);
    await until("the first deadline is past", () => performance.now() > deadlineMs);
    lease.assertHeld();
    assert.equal(await other.mutex("m").tryAcquire(), null);
    assert.equal(await lease.release(), true);
  },
};
