import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError, StoreError } from "../../errors/index.js";
import type { Behaviour } from "../needs.js";
import { needAll, needFaults, needMarks } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, until, within } from "../patience.js";

/** Longer than a store on a busy machine takes to answer, so that only the cut counts. */
const SILENCE_MS = 2_000;

export const faultsSilence: readonly Behaviour[] = [
  {
    title: "an acquire tolerates a silent store for storeTimeoutMs, then rejects and holds nothing",
    needs: needFaults("cut", "heal"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const other = await context.open();
      await (await locks.mutex("warm").acquire()).release();
      await faults.cut();
      const startMs = performance.now();
      const acquiring = locks.mutex("m").acquire({ storeTimeoutMs: 500 });
      const error = await within(
        500 + PROMPT_MS,
        "the acquire ends",
        acquiring.catch((e) => e),
      );
      const tookMs = performance.now() - startMs;
      assert.ok(error instanceof StoreError, String(error));
      assert.equal(error.lockName, "m");
      assert.ok(tookMs >= 450, `it took ${tookMs} ms`);
      await faults.heal();
      await context.untilFree(other, "m");
      await (await locks.mutex("m").acquire()).release();
    },
  },
  {
    title: "a wait and a try end in time with a StoreError when the store is silent",
    needs: needFaults("cut", "heal"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      await (await locks.mutex("warm").acquire()).release();
      await faults.cut();
      const waiting = locks.mutex("m").acquire({ waitMs: 300 });
      const late = await within(
        300 + PROMPT_MS,
        "the wait ends",
        waiting.catch((error) => error),
      );
      assert.ok(late instanceof StoreError, `the error reports the silent store: ${late}`);
      const trying = locks.mutex("m").tryAcquire({ storeTimeoutMs: 300 });
      const error = await within(
        300 + PROMPT_MS,
        "the try ends",
        trying.catch((reason) => reason),
      );
      assert.ok(error instanceof StoreError, String(error));
      await faults.heal();
      await context.untilFree(locks, "m");
    },
  },
  {
    title: "a mark that could not be left before a revocation is not reported as left",
    needs: needAll(needMarks, needFaults("cut", "heal")),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const other = await context.openKnown();
      const begun = await locks.beginOnce("job", { keepMs: 60_000, waitMs: PATIENCE_MS });
      assert.ok(begun.began);
      await faults.cut();
      const finished = begun.finish().then(
        () => null,
        (error) => error,
      );
      const revoking = { token: begun.token, reason: "test" };
      assert.equal(await other.revoke("job", revoking, "once"), true);
      await faults.heal();
      const error = await within(PATIENCE_MS, "the release ends", finished);
      assert.ok(error instanceof HoldfastError, `finish reports that there is no mark: ${error}`);
      assert.equal((await other.inspect("job", "once")).mark, null);
    },
  },
  {
    title: "a lease survives when the store is silent for a while before the deadline",
    needs: needFaults("cut", "heal"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const ttlMs = 5 * context.ttl.renewedMs;
      const lease = await locks.mutex("m").acquire({ ttlMs });
      const deadlineMs = performance.now() + lease.remainingMs();
      await faults.cut();
      // The first renewal is due after a third of the ttl, and fails.
      await until("a renewal was due", () => lease.remainingMs() < ttlMs * 0.6);
      await faults.heal();
      await until("the first deadline is past", () => performance.now() > deadlineMs);
      lease.assertHeld();
      assert.equal(lease.signal.aborted, false);
      assert.equal(await lease.release(), true);
    },
  },
  {
    title:
      "a release that cannot reach the store ends in time and leaves the result of run as it is",
    needs: needFaults("cut", "heal"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      // The body must end while the lease lives: otherwise its loss is the result.
      const { renewedMs } = context.ttl;
      const running = locks.mutex("m").run(
        async () => {
          await faults.cut();
          return "the value";
        },
        { ttlMs: renewedMs },
      );
      const value = await within(renewedMs + PROMPT_MS, "the release gives up", running);
      assert.equal(value, "the value");
      await faults.heal();
      await context.untilFree(locks, "m");
    },
  },
  {
    title:
      "a waiter tolerates a silent store for storeTimeoutMs, then rejects and leaves the queue",
    needs: needFaults("cut", "heal"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const other = await context.open();
      const held = await other.mutex("m").acquire();
      const waiting = locks.mutex("m").acquire({ storeTimeoutMs: SILENCE_MS });
      // The result is awaited later; until then a rejection is not unhandled.
      const ended = waiting.catch((reason) => reason);
      await context.untilWaiting(other, "m", 1);
      await faults.cut();
      const error = await within(SILENCE_MS + PROMPT_MS, "the wait ends", ended);
      assert.ok(error instanceof StoreError, String(error));
      await faults.heal();
      await held.release();
      await context.untilFree(other, "m");
    },
  },
  {
    title: "a waiter that was cut off during the release acquires the lock when it reconnects",
    needs: needFaults("cut", "heal"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const other = await context.open();
      const held = await other.mutex("m").acquire();
      const waiting = locks.mutex("m").acquire();
      await context.untilWaiting(other, "m", 1);
      await faults.cut();
      await held.release();
      await sleep(100);
      await faults.heal();
      // A client that reconnects asks for missed grants at once, long before its next poll.
      const lease = await within(PROMPT_MS, "the waiter is served", waiting);
      assert.equal(await lease.release(), true);
    },
  },
];
