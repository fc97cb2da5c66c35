import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors.js";
import type { Holdfast } from "../../holdfast.js";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, until, within } from "../patience.js";

const reason = "stuck deploy";

/** A client that was told of one revocation hears of the next: its subscription is up. */
async function beListening(client: Holdfast, other: Holdfast): Promise<void> {
  const { signal, token } = await client.mutex("first").acquire({ fairness: "strict" });
  assert.equal(await other.revoke("first", { token, reason }), true);
  await until("the first victim is told", () => signal.aborted);
}

export const revoke: Behaviour = {
  title: "revoke ends the lease with the given token only, and its holder is told at once",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const old = await a.mutex("m").acquire();
    await old.release();
    await beListening(a, b);
    const lease = await a.mutex("m").acquire({ fairness: "strict" });
    assert.equal(await b.revoke("m", { token: old.token, reason }), false);
    assert.equal(await b.revoke("m", { token: lease.token + 1n, reason }), false);
    assert.equal(await b.revoke("other", { token: lease.token, reason }), false);
    lease.assertHeld();

    const { signal } = lease;
    const waiting = b.mutex("m").acquire();
    assert.equal(await b.revoke("m", { token: lease.token, reason }), true);
    // The next renewal is far: only a message can be this quick.
    await until("the victim is told", () => signal.aborted, PROMPT_MS);
    assert.ok(signal.reason instanceof LeaseLostError);
    assert.equal(signal.reason.reason, "revoked");
    assert.match(signal.reason.message, /stuck deploy/);
    assert.throws(() => lease.assertHeld(), { code: "HF_LEASE_LOST" });
    const next = await within(PROMPT_MS, "the lock is free", waiting);
    assert.equal(await lease.release(), false);
    assert.equal(await b.revoke("m", { token: lease.token, reason }), false, "it was before");
    next.assertHeld();
  },
};
