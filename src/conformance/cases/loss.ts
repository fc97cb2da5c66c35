import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { LeaseLostError } from "../../errors/index.js";
import { altered } from "../altered.js";
import type { Behaviour } from "../needs.js";
import { needWipe } from "../needs.js";
import { PROMPT_MS, until, within } from "../patience.js";

function block(durationMs: number): void {
  const endMs = performance.now() + durationMs;
  while (performance.now() < endMs);
}

export const loss: readonly Behaviour[] = [
  {
    title: "a holder that cannot renew sees its lease lost before the store grants the lock again",
    async run(context) {
      const mute = altered(await context.openStore(), {
        renew: () => Promise.reject(new Error("mute")),
      });
      const [a, b] = [context.bind(mute), await context.open()];
      const { shortMs } = context.ttl;
      const lease = await a.mutex("m").acquire({ ttlMs: shortMs });
      const { signal } = lease;
      // A busy machine may see the next grant late, so the deadline counts too.
      const remainingMs = lease.remainingMs();
      assert.ok(remainingMs <= shortMs, `${remainingMs} ms are left of a ttl of ${shortMs} ms`);
      // On a busy machine the grant may be seen before the timer of the loss runs. The lease is
      // lost by the clock then, and reading its state aborts the signal.
      const takeover = b
        .mutex("m")
        .acquire()
        .then((next) => ({
          next,
          state: lease.state,
          isTold: signal.aborted,
        }));
      const bound = 2 * shortMs + PROMPT_MS;
      const { next, state, isTold } = await within(bound, "the waiter takes over", takeover);
      assert.equal(state, "lost");
      assert.equal(isTold, true);
      assert.ok(signal.reason instanceof LeaseLostError);
      assert.equal(signal.reason.reason, "expired");
      assert.equal(signal.reason.lockName, "m");
      assert.ok(next.token > lease.token);
    },
  },
  {
    title: "after a loss the signal is aborted and assertHeld throws, even without a listener",
    async run(context) {
      const locks = await context.open();
      const options = { ttlMs: context.ttl.shortMs, renew: false };
      const signalled = await locks.mutex("signalled").acquire(options);
      const asserted = await locks.mutex("asserted").acquire(options);
      // The clock is read last: the other way round, the end would be a little too early.
      const remainingMs = asserted.remainingMs();
      const endMs = performance.now() + remainingMs;
      await until("the time of both is over", () => performance.now() > endMs);
      assert.equal(signalled.signal.aborted, true);
      assert.ok(signalled.signal.reason instanceof LeaseLostError);
      assert.throws(() => signalled.signal.throwIfAborted(), { code: "HF_LEASE_LOST" });
      assert.throws(() => asserted.assertHeld(), { code: "HF_LEASE_LOST" });
      assert.equal(asserted.state, "lost");
    },
  },
  {
    title:
      "after the event loop was blocked past the ttl, the next statement sees the lease as lost",
    alone: true,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { shortMs } = context.ttl;
      const [asserted, stated, measured, signalled] = await Promise.all(
        ["asserted", "stated", "measured", "signalled"].map((name) =>
          a.mutex(name).acquire({ ttlMs: shortMs }),
        ),
      );
      assert.ok(asserted && stated && measured && signalled);
      block(shortMs + 50);
      assert.throws(() => asserted.assertHeld(), LeaseLostError);
      assert.equal(stated.state, "lost");
      assert.equal(measured.remainingMs(), 0);
      assert.equal(signalled.signal.aborted, true);

      // The renewal that was due during the block must not restore the lease.
      await sleep(shortMs / 2);
      assert.throws(() => asserted.assertHeld(), LeaseLostError);
      assert.equal(await asserted.release(), false);
      await context.untilFree(b, "asserted", shortMs + PROMPT_MS);
    },
  },
  {
    title: "run waits for its body after a loss, then rejects with the loss and the body's value",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const outcome = a.mutex("m").run(async ({ token, signal }) => {
        const lost = new Promise((resume) => signal.addEventListener("abort", resume));
        assert.equal(await b.revoke("m", { token, reason: "test" }), true);
        await lost;
        return "too late";
      });
      await assert.rejects(outcome, (error) => {
        assert.ok(error instanceof LeaseLostError);
        assert.equal(error.value, "too late");
        assert.equal(error.reason, "revoked");
        return true;
      });
    },
  },
  {
    title: "a holder whose state is deleted in the store is told by its deadline",
    needs: needWipe,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { renewedMs } = context.ttl;
      const lease = await a.mutex("m").acquire({ ttlMs: renewedMs });
      const { signal } = lease;
      const remainingMs = lease.remainingMs();
      await context.wipe();
      await until("the holder learns of the loss", () => signal.aborted, remainingMs + PROMPT_MS);
      assert.ok(signal.reason instanceof LeaseLostError);
      const reasons = ["missing", "replaced", "session_ended", "expired"];
      assert.ok(reasons.includes(signal.reason.reason), signal.reason.reason);
      assert.throws(() => lease.assertHeld(), { code: "HF_LEASE_LOST" });
      assert.equal(await lease.release(), false);

      const next = await within(PROMPT_MS, "the lock is free", b.mutex("m").acquire());
      assert.ok(next.token > lease.token, "tokens rise even when the store forgot the last one");
    },
  },
  {
    title: "a release finds a loss that no renewal has found, and run rejects with it",
    needs: needWipe,
    async run(context) {
      const locks = await context.open();
      const lease = await locks.mutex("m").acquire();
      // Leases are long: no renewal comes before the release.
      const running = locks.mutex("other").run(async () => {
        await context.wipe();
        return "done";
      });
      await assert.rejects(running, (error) => {
        assert.ok(error instanceof LeaseLostError);
        assert.equal(error.value, "done");
        return true;
      });
      assert.equal(await lease.release(), false);
      assert.equal(lease.state, "lost");
      assert.equal(lease.signal.aborted, true);
    },
  },
  {
    title: "waiters whose queue is deleted in the store ask again",
    needs: needWipe,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { renewedMs } = context.ttl;
      await a.mutex("m").acquire();
      const waiting = b.mutex("m").acquire({ ttlMs: renewedMs });
      await context.untilWaiting(a, "m", 1);
      await context.wipe();
      const bound = 2 * renewedMs + PROMPT_MS;
      const lease = await within(bound, "the waiter finds the lock free", waiting);
      lease.assertHeld();
    },
  },
];
