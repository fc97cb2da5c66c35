import assert from "node:assert/strict";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../needs.js";
import {
  BRIEF_WAIT_MS,
  isSettled,
  PATIENCE_MS,
  PROMPT_MS,
  timesOut,
  until,
  within,
} from "../patience.js";

const storeTimeoutMs = 3_000;

const reason = new Error("aborted by the test");
const isReason = (error: unknown): boolean => error === reason;

/** From "before the request is sent" to "about when the reply comes". */
const moments: readonly (() => Promise<unknown>)[] = [
  () => Promise.resolve(),
  () => new Promise<void>((resume) => process.nextTick(resume)),
  () => nextTurn(),
  async () => {
    await nextTurn();
    await nextTurn();
  },
  () => sleep(1),
  () => sleep(3),
];

export const wait: readonly Behaviour[] = [
  {
    title: "a waiter is granted the lock as soon as it is released, and not before",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const held = await a.mutex("m").acquire();
      const waiting = b.mutex("m").acquire();
      await context.untilWaiting(a, "m", 1);
      assert.equal(await isSettled(waiting, 100), false, "the held lock is not granted again");

      assert.equal(await held.release(), true);
      // Leases are long, so only a message about the release can be this quick.
      const next = await within(PROMPT_MS, "the waiter is woken", waiting);
      assert.ok(next.token > held.token);
      assert.ok(next.remainingMs() > 0);
      assert.equal(await next.release(), true);
    },
  },
  {
    title: "a lease that a release handed off lasts for its whole ttl",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { longMs } = context.ttl;
      for (const renew of [true, false]) {
        const held = await a.mutex("m").acquire();
        const waiting = b.mutex("m").acquire({ renew, ttlMs: longMs });
        await context.untilWaiting(a, "m", 1);
        await held.release();
        const lease = await within(PROMPT_MS, "the waiter is woken", waiting);
        const isLong = () => lease.remainingMs() > longMs * 0.8;
        await until("the lease is as long as was asked for", isLong, PROMPT_MS);
        const [holder] = (await a.inspect("m")).holders;
        if (holder) assert.ok(holder.remainingMs > longMs * 0.8);
        assert.equal(await lease.release(), true);
      }
    },
  },
  {
    title: "a wait longer than storeTimeoutMs does not count as a silent store",
    async run(context) {
      // The first waiting request of a new client may take seconds on a busy server.
      const [a, b] = [await context.openKnown(), await context.openKnown()];
      const held = await a.mutex("m").acquire();
      const served = (["bounded", "strict"] as const).map(async (fairness) => {
        const lease = await b.mutex("m").acquire({ storeTimeoutMs, fairness });
        return lease.release();
      });
      const early = await Promise.race([...served, sleep(1.5 * storeTimeoutMs, "they wait")]);
      assert.equal(early, "they wait");
      await held.release();
      const all = within(PATIENCE_MS, "both are served", Promise.all(served));
      assert.deepEqual(await all, [true, true]);
    },
  },
  {
    title: "an acquire times out after waitMs, names the holder and leaves the queue",
    async run(context) {
      // The first waiting request of a new client may take seconds on a busy server.
      const [a, b] = [await context.openKnown(), await context.openKnown()];
      const held = await a.mutex("m").acquire({ meta: { job: "held by a" } });
      for (const fairness of ["bounded", "strict"] as const) {
        const startMs = performance.now();
        const waiting = b.mutex("m").acquire({ waitMs: BRIEF_WAIT_MS, fairness });
        const error = await timesOut(waiting);
        const tookMs = performance.now() - startMs;
        assert.ok(tookMs >= BRIEF_WAIT_MS - 2, `waited only ${tookMs} ms`);
        if (!error) continue;
        assert.equal(error.lockName, "m");
        assert.equal(error.waitMs, BRIEF_WAIT_MS);
        // A store that shows holders also names the holder in the error.
        const [holder] = (await b.inspect("m")).holders;
        if (holder) assert.equal(error.holder?.meta.job, "held by a");
        if (holder) assert.equal(error.holder?.token, held.token);
      }
      assert.deepEqual((await a.inspect("m")).waiters, [], "the queue is empty");
      await held.release();
      await context.untilFree(b, "m", PROMPT_MS);
    },
  },
  {
    title: "an acquire with an aborted signal rejects and takes nothing",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const signal = AbortSignal.abort(reason);
      await assert.rejects(a.mutex("m").acquire({ signal }), isReason);
      await assert.rejects(
        a.mutex("m").run(() => assert.fail("ran"), { signal }),
        isReason,
      );
      assert.deepEqual(a.held(), []);
      const lease = await b.mutex("m").tryAcquire();
      assert.ok(lease, "the lock is free");
    },
  },
  {
    title: "an abort ends a wait at once and takes the waiter out of the queue",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const held = await a.mutex("m").acquire();
      for (const fairness of ["bounded", "strict"] as const) {
        const controller = new AbortController();
        const waiting = b.mutex("m").acquire({ signal: controller.signal, fairness });
        await context.untilWaiting(a, "m", 1);
        controller.abort(reason);
        await assert.rejects(within(PROMPT_MS, "the abort is heard", waiting), isReason);
        await context.untilWaiting(a, "m", 0, PROMPT_MS);
      }
      await held.release();
      await context.untilFree(a, "m", PROMPT_MS);
    },
  },
  {
    title: "an abort while the request is under way leaves nothing held",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      for (const fairness of ["bounded", "strict"] as const) {
        for (const moment of [...moments, ...moments]) {
          const controller = new AbortController();
          const acquiring = a.mutex("m").acquire({ signal: controller.signal, fairness });
          await moment();
          controller.abort(reason);
          // The acquire ended before the abort, or rejects with the reason and holds nothing.
          const lease = await acquiring.catch((error) => assert.equal(error, reason));
          await lease?.release();
          assert.deepEqual(a.held(), []);
          await context.untilFree(b, "m", PROMPT_MS);
        }
      }
    },
  },
];
