import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { needWipe } from "../needs.js";
import { PROMPT_MS, until, within } from "../patience.js";

export const deletedState: Behaviour = {
  title: "a holder whose state is deleted in the store is told, at the deadline at the latest",
  needs: needWipe,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const { renewedMs } = context.ttl;
    const lease = await a.mutex("m").acquire({ ttlMs: renewedMs });
    const { signal } = lease;
    const remainingMs = lease.remainingMs();
    await context.wipe();
    await until("the loss is told", () => signal.aborted, remainingMs + PROMPT_MS);
    assert.ok(signal.reason instanceof LeaseLostError);
    const reasons = ["missing", "replaced", "session_ended", "expired"];
    assert.ok(reasons.includes(signal.reason.reason), signal.reason.reason);
    assert.throws(() => lease.assertHeld(), { code: "HF_LEASE_LOST" });
    assert.equal(await lease.release(), false);

    const next = await within(PROMPT_MS, "the name is free", b.mutex("m").acquire());
    assert.ok(next.token > lease.token, "tokens rise also when the store forgot the last");
  },
};
