import assert from "node:assert/strict";
import type { Behaviour } from "../needs.js";
import { needAll, needFifo, needShared } from "../needs.js";

export const inspection: readonly Behaviour[] = [
  {
    title: "inspect shows the holders and the waiters of a lock, with their meta",
    needs: needAll(needShared, needFifo),
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { longMs } = context.ttl;
      const empty = await b.inspect("s");
      assert.deepEqual(empty, { space: "lock", name: "s", holders: [], waiters: [], mark: null });
      const first = await a.semaphore("s", 4).acquire({ weight: 3, meta: { job: "first" } });
      const second = await b.semaphore("s", 4).acquire({ meta: { label: "second" } });
      const waiting = b.readWrite("s").write.acquire({ meta: { job: "waits" } });
      waiting.catch(() => undefined);
      await context.untilWaiting(a, "s", 1);

      const { holders, waiters } = await b.inspect("s");
      assert.deepEqual(
        holders.map(({ token, mode, weight, limit }) => ({ token, mode, weight, limit })),
        [
          { token: first.token, mode: "shared", weight: 3, limit: 4 },
          { token: second.token, mode: "shared", weight: 1, limit: 4 },
        ],
      );
      assert.equal(holders[0]?.meta.job, "first");
      assert.equal(holders[0]?.meta.pid, process.pid, "the client adds host, pid and label");
      assert.equal(holders[1]?.meta.label, "second");
      for (const { heldMs, remainingMs } of holders) {
        assert.ok(heldMs >= 0 && heldMs < longMs);
        assert.ok(remainingMs > 0 && remainingMs <= longMs);
      }
      const [waiter] = waiters;
      assert.ok(waiter && waiters.length === 1);
      assert.deepEqual([waiter.mode, waiter.weight, waiter.limit], ["exclusive", 1, null]);
      assert.equal(waiter.meta.job, "waits");
      assert.ok(waiter.waitedMs >= 0 && waiter.waitedMs < longMs);
    },
  },
  {
    title: "list yields the locks in use whose names begin with the literal prefix",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const names = ["job:1", "job:2", "job*", "jab:1", "other", "job"];
      const leases = await Promise.all(names.map((name) => a.mutex(name).acquire()));
      await a.election("job:seat").campaign();
      const listed = async (options?: Parameters<typeof b.list>[0]) => {
        const found: string[] = [];
        for await (const { name, holders } of b.list(options)) {
          assert.equal(holders.length, 1);
          found.push(name);
        }
        return found.sort();
      };
      assert.deepEqual(await listed({ prefix: "job:" }), ["job:1", "job:2"]);
      assert.deepEqual(await listed({ prefix: "job" }), ["job", "job*", "job:1", "job:2"]);
      assert.deepEqual(await listed({ prefix: "job*" }), ["job*"]);
      assert.deepEqual(await listed({ prefix: "j?b" }), []);
      assert.deepEqual(await listed({ prefix: "j[ao]b" }), []);
      assert.deepEqual(await listed({ prefix: "none" }), []);
      assert.deepEqual(await listed(), [...names].sort());
      assert.deepEqual(await listed({ space: "election" }), ["job:seat"]);
      await Promise.all(leases.map((lease) => lease.release()));
      assert.deepEqual(await listed(), [], "a free lock is not listed");
    },
  },
];
