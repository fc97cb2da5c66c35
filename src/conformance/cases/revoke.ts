import assert from "node:assert/strict";
import type { Holdfast } from "../../api/holdfast.js";
import { LeaseLostError } from "../../errors/index.js";
import type { Behaviour } from "../needs.js";
import { needProcesses, needShared, needSpans } from "../needs.js";
import { PROMPT_MS, until, within } from "../patience.js";

const reason = "stuck deploy";

/** Resolves when the client is subscribed: it has heard of one revocation. */
async function untilSubscribed(client: Holdfast, other: Holdfast): Promise<void> {
  const { signal, token } = await client.mutex("first").acquire({ fairness: "strict" });
  assert.equal(await other.revoke("first", { token, reason }), true);
  await until("the first holder is told", () => signal.aborted);
}

export const revoke: readonly Behaviour[] = [
  {
    title: "revoke ends the lease with the given token only, and its holder is told at once",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const old = await a.mutex("m").acquire();
      await old.release();
      await untilSubscribed(a, b);
      const lease = await a.mutex("m").acquire({ fairness: "strict" });
      assert.equal(await b.revoke("m", { token: old.token, reason }), false);
      assert.equal(await b.revoke("m", { token: lease.token + 1n, reason }), false);
      assert.equal(await b.revoke("other", { token: lease.token, reason }), false);
      lease.assertHeld();

      const { signal } = lease;
      const waiting = b.mutex("m").acquire();
      assert.equal(await b.revoke("m", { token: lease.token, reason }), true);
      // The next renewal is far away: only a message can be this quick.
      await until("the holder is told", () => signal.aborted, PROMPT_MS);
      assert.ok(signal.reason instanceof LeaseLostError);
      assert.equal(signal.reason.reason, "revoked");
      assert.match(signal.reason.message, /stuck deploy/);
      assert.throws(() => lease.assertHeld(), { code: "HF_LEASE_LOST" });
      const next = await within(PROMPT_MS, "the lock is free", waiting);
      assert.equal(await lease.release(), false);
      assert.equal(
        await b.revoke("m", { token: lease.token, reason }),
        false,
        "the lease has ended already",
      );
      next.assertHeld();
    },
  },
  {
    title: "revoke ends the turn under way, by the token of the turn",
    needs: needSpans,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const held = await a.mutex("m").acquire();
      // They wait in their process, and share the next grant, which has a span.
      const turns = Array.from({ length: 3 }, () => a.mutex("m").acquire());
      await held.release();
      const [first, second, third] = turns;
      assert.ok(first && second && third);
      await (await first).release();
      const victim = await second;
      const { signal } = victim;
      // Either token names the grant: its first one, or that of the turn under way.
      const [holder] = (await b.inspect("m")).holders;
      assert.ok(holder && holder.token < victim.token);
      assert.equal(await b.revoke("m", { token: victim.token, reason }), true);
      await until("the turn is ended", () => signal.aborted, PROMPT_MS);
      const next = await within(PROMPT_MS, "the next waiter gets a new grant", third);
      assert.ok(next.token > victim.token);
      next.assertHeld();
    },
  },
  {
    title: "revoke ends one of several readers and leaves the other readers",
    needs: needShared,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const first = await a.readWrite("m").read.acquire();
      const second = await a.readWrite("m").read.acquire();
      const { signal } = first;
      assert.equal(await b.revoke("m", { token: first.token, reason }), true);
      await until("the holder is told", () => signal.aborted, PROMPT_MS);
      second.assertHeld();
      assert.equal(second.signal.aborted, false);
      assert.equal(await second.release(), true);
    },
  },
  {
    title: "a holder in another process is told of its revocation at once",
    needs: needProcesses,
    async run(context) {
      const [locks, child] = [await context.open(), await context.child()];
      const { longMs } = context.ttl;
      const token = await child.call("acquire", { kind: "mutex", name: "m" }, { ttlMs: longMs });
      assert.equal(await locks.revoke("m", { token, reason }), true);
      const lost = await within(PROMPT_MS, "the holder is told", child.lost(token));
      assert.equal(lost.reason, "revoked");
      await context.untilFree(locks, "m", PROMPT_MS);
    },
  },
];
