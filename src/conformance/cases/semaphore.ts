import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../needs.js";
import { needAll, needFifo, needProcesses, needShared } from "../needs.js";
import { isSettled, PATIENCE_MS, PROMPT_MS, within } from "../patience.js";

export const semaphore: readonly Behaviour[] = [
  {
    title: "a semaphore grants weights up to its limit and never above",
    needs: needShared,
    async run(context) {
      const clients = await Promise.all([1, 2, 3].map(() => context.open()));
      const limit = 5;
      let [used, most, served] = [0, 0, 0];
      const use = async (index: number): Promise<void> => {
        const weight = 1 + (index % 3);
        const locks = clients[index % 3];
        await locks?.semaphore("s", limit).run(
          async () => {
            used += weight;
            most = Math.max(most, used);
            await sleep(1 + (index % 4));
            used -= weight;
            served += 1;
          },
          { weight },
        );
      };
      const users = Promise.all(Array.from({ length: 60 }, (_, index) => use(index)));
      await within(PATIENCE_MS, "all are served", users);
      assert.equal(served, 60);
      assert.ok(most <= limit, `${most} permits of ${limit} were in use`);
      const permits = clients.flatMap((locks) => [1, 2].map(() => locks.semaphore("s", limit)));
      const [last, ...rest] = permits;
      const taken = Promise.all(rest.map((permit) => permit.acquire()));
      const leases = await within(PROMPT_MS, "all permits are granted", taken);
      assert.equal(await last?.tryAcquire(), null);
      await Promise.all(leases.map((lease) => lease.release()));
    },
  },
  {
    title: "a heavy request is not overtaken by light ones that would fit",
    needs: needAll(needShared, needFifo),
    async run(context) {
      const [a, b] = [await context.openKnown(), await context.openKnown()];
      const light = await a.semaphore("s", 4).acquire({ weight: 2 });
      const heavy = b.semaphore("s", 4).acquire({ weight: 4 });
      await context.untilWaiting(a, "s", 1);
      assert.equal(
        await a.semaphore("s", 4).tryAcquire(),
        null,
        "a light request does not overtake the waiter",
      );
      await light.release();
      const lease = await within(PROMPT_MS, "the heavy request is granted", heavy);
      assert.equal(await a.semaphore("s", 4).tryAcquire(), null);
      await lease.release();
      const over = { weight: 5 };
      await assert.rejects(a.semaphore("s", 4).acquire(over), { code: "HF_INVALID_OPTION" });
    },
  },
  {
    title: "where limits differ, the lowest one applies",
    needs: needShared,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const wide = await a.semaphore("s", 3).acquire();
      const narrow = await b.semaphore("s", 2).acquire();
      assert.equal(await a.semaphore("s", 3).tryAcquire(), null, "a holder has limit 2");
      await narrow.release();
      const second = await a.semaphore("s", 3).acquire();
      assert.equal(await b.semaphore("s", 2).tryAcquire(), null, "two permits are in use");
      const third = await a.semaphore("s", 3).tryAcquire();
      assert.ok(third);
      await Promise.all([wide, second, third].map((lease) => lease.release()));
    },
  },
  {
    title: "the permits of a killed process come back",
    needs: needAll(needShared, needProcesses),
    async run(context) {
      const [locks, child] = [await context.open(), await context.child()];
      const { renewedMs } = context.ttl;
      const options = { ttlMs: renewedMs, weight: 2 };
      await child.call("acquire", { kind: "semaphore", name: "s", limit: 3 }, options);
      const other = await locks.semaphore("s", 3).acquire();
      const waiting = locks.semaphore("s", 3).acquire({ weight: 2 });
      assert.equal(await isSettled(waiting, 50), false);
      await child.kill();
      await within(2 * renewedMs + PROMPT_MS, "the permits come back", waiting);
      other.assertHeld();
    },
  },
];
