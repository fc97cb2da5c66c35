import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { ChildClient } from "../child-client.js";
import type { Context } from "../context.js";
import type { Behaviour } from "../needs.js";
import { needAll, needFifo, needProcesses, needStopping } from "../needs.js";
import { isSettled, PATIENCE_MS, PROMPT_MS, within } from "../patience.js";
import { assertComplete, withCounter } from "../shared-counter.js";

const lock = { kind: "mutex", name: "m" } as const;
const strict = { fairness: "strict" } as const;

/** Three child processes wait, the second falls silent, and the third acquires all the same. */
async function checkPassedOver(
  context: Context,
  silence: (second: ChildClient) => Promise<void>,
  afterwards?: (second: ChildClient, acquiring: Promise<bigint>) => Promise<void>,
): Promise<void> {
  const locks = await context.open();
  const children = await context.children(3);
  await Promise.all(children.map((child) => child.call("warmUp")));
  const { renewedMs } = context.ttl;
  const held = await locks.mutex("m").acquire();
  const acquiring: Promise<bigint>[] = [];
  for (const child of children) {
    acquiring.push(child.call("acquire", lock, { ttlMs: renewedMs }));
    await context.untilWaiting(locks, "m", acquiring.length);
  }
  const [first, second, third] = children;
  assert.ok(first && second && third);
  const [firstTurn, secondTurn, thirdTurn] = acquiring;
  assert.ok(firstTurn && secondTurn && thirdTurn);

  await silence(second);
  await held.release();
  const firstToken = await within(PROMPT_MS, "the first is served", firstTurn);
  assert.equal(await isSettled(thirdTurn, 50), false);
  await first.call("release", firstToken);
  // Long enough for an unconfirmed offer to lapse, but no longer.
  const bound = 2 * renewedMs + PROMPT_MS;
  const thirdToken = await within(bound, "the third is served", thirdTurn);
  assert.ok(thirdToken > firstToken);
  await third.call("release", thirdToken);
  await afterwards?.(second, secondTurn);
}

export const processes: readonly Behaviour[] = [
  {
    title: "100 contenders in several processes exclude each other",
    needs: needProcesses,
    run: (context) =>
      withCounter(async (file) => {
        const children = await context.children(4);
        const lock = { kind: "mutex", name: "count" } as const;
        const counting = children.map((child) => child.call("count", lock, file, 25));
        assertComplete((await Promise.all(counting)).flat(), 100);
      }),
  },
  {
    title: "the lock of a killed process goes to the next waiter when its lease expires",
    needs: needProcesses,
    async run(context) {
      const [locks, child] = [await context.open(), await context.child()];
      const { renewedMs } = context.ttl;
      const token = await child.call("acquire", lock, { ttlMs: renewedMs });
      const waiting = locks.mutex("m").acquire();
      await child.kill();
      const lease = await within(2 * renewedMs + PROMPT_MS, "the waiter takes over", waiting);
      assert.ok(lease.token > token);
    },
  },
  {
    title:
      "a process that was stopped past its ttl finds its lease lost and leaves the next one intact",
    needs: needStopping,
    async run(context) {
      const [locks, child] = [await context.open(), await context.child()];
      const { renewedMs } = context.ttl;
      const token = await child.call("acquire", lock, { ttlMs: renewedMs });
      await child.stop();
      const waiting = locks.mutex("m").acquire();
      const lease = await within(2 * renewedMs + PROMPT_MS, "the waiter takes over", waiting);
      assert.ok(lease.token > token);

      // The call is waiting when the process continues, so it reads its lease first.
      const reporting = child.call("report", token);
      child.resume();
      const report = await within(PROMPT_MS, "the child process answers", reporting);
      assert.deepEqual(report, { state: "lost", remainingMs: 0, assertion: "HF_LEASE_LOST" });
      await within(PROMPT_MS, "the child process reports the loss", child.lost(token));
      assert.equal(await child.call("release", token), false);
      lease.assertHeld();
      const { holders } = await locks.inspect("m");
      assert.deepEqual(
        holders.map((holder) => holder.token),
        [lease.token],
      );
      assert.equal(await lease.release(), true);
    },
  },
  {
    title: "a process that was stopped for less than its ttl keeps its lease",
    needs: needStopping,
    async run(context) {
      const [locks, child] = [await context.open(), await context.child()];
      const ttlMs = 2 * context.ttl.renewedMs;
      const token = await child.call("acquire", lock, { ttlMs });
      await child.stop();
      // Longer than the time to the next renewal, so that renewal comes late.
      await sleep(ttlMs * 0.45);
      child.resume();
      await sleep(ttlMs * 0.75);
      assert.equal((await child.call("report", token)).state, "held");
      assert.equal(await locks.mutex("m").tryAcquire(), null);
      assert.equal(await child.call("release", token), true);
    },
  },
  {
    title: "a killed waiter in the middle of the queue delays the next one only for a while",
    needs: needAll(needFifo, needProcesses),
    run: (context) =>
      checkPassedOver(context, async (second) => {
        await second.kill();
      }),
  },
  {
    title: "a stopped waiter is passed over, and acquires the lock when it continues",
    needs: needAll(needFifo, needStopping),
    run: (context) =>
      checkPassedOver(
        context,
        (second) => second.stop(),
        async (second, acquiring) => {
          second.resume();
          const token = await within(
            PATIENCE_MS,
            "the stopped waiter acquires the lock",
            acquiring,
          );
          assert.equal((await second.call("report", token)).state, "held");
        },
      ),
  },
  {
    title:
      "a stopped process with many waiters delays the queue no longer than one with a single one",
    needs: needAll(needFifo, needStopping),
    async run(context) {
      const [locks, child] = [await context.openKnown(), await context.child()];
      const { renewedMs } = context.ttl;
      await child.call("warmUp");
      const held = await locks.mutex("m").acquire();
      const crowd = Array.from({ length: 20 }, () =>
        child.call("acquire", lock, { ttlMs: renewedMs, ...strict }),
      );
      await context.untilWaiting(locks, "m", crowd.length);
      await child.stop();
      const waiting = locks.mutex("m").acquire(strict);
      await context.untilWaiting(locks, "m", crowd.length + 1);
      await held.release();
      // One offer lapses before the store passes over the process, not twenty.
      const bound = 2.5 * renewedMs;
      await within(bound, "the last waiter acquires the lock", waiting);
    },
  },
];
