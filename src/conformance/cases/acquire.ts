import assert from "node:assert/strict";
import { StoreError } from "../../errors/index.js";
import type { Behaviour } from "../needs.js";
import { until } from "../patience.js";
import { assertComplete, countUp, withCounter } from "../shared-counter.js";

export const acquire: readonly Behaviour[] = [
  {
    title: "100 contenders in one process exclude each other",
    run: (context) =>
      withCounter(async (file) => {
        const clients = await Promise.all(Array.from({ length: 4 }, () => context.open()));
        const counting = clients.map((locks) =>
          Array.from({ length: 25 }, () => countUp(locks.mutex("count"), file)),
        );
        assertComplete(await Promise.all(counting.flat()), 100);
      }),
  },
  {
    title: "a try takes a free lock and never waits for a held one",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const lease = await a.mutex("m").tryAcquire();
      assert.ok(lease, "a free lock is granted");
      assert.equal(lease.state, "held");
      assert.ok(lease.remainingMs() > context.ttl.longMs / 2);
      lease.assertHeld();

      assert.equal(await b.mutex("m").tryAcquire(), null, "another client is refused");
      assert.equal(await a.mutex("m").tryAcquire(), null, "the same client is refused too");
      const strict = { fairness: "strict" } as const;
      assert.equal(
        await a.mutex("m").tryAcquire(strict),
        null,
        "the same client is refused without turns too",
      );
      // On a busy machine the store may take longer than the 250 ms that such a call has.
      const refusal = await until("the store answers in time", async () => {
        const error = await b
          .mutex("m")
          .acquire({ waitMs: 0 })
          .then(String, (reason) => reason);
        return error instanceof StoreError ? null : error;
      });
      assert.equal(refusal.code, "HF_ACQUIRE_TIMEOUT", String(refusal));

      assert.equal(await lease.release(), true);
      assert.equal(lease.state, "released");
      assert.throws(() => lease.assertHeld(), { code: "HF_LEASE_LOST" });
      const next = await b.mutex("m").tryAcquire();
      assert.ok(next, "a released lock is free at once");
      assert.equal(await next.release(), true);
    },
  },
  {
    title: "run passes on what its body returns or throws, and frees the lock either way",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const value = await a.mutex("m").run(async (lease) => {
        lease.assertHeld();
        assert.equal(await b.mutex("m").tryAcquire(), null);
        return 7;
      });
      assert.equal(value, 7);

      const failure = new Error("the body failed");
      const failing = a.mutex("m").run(() => Promise.reject(failure));
      await assert.rejects(failing, (error) => error === failure);
      await context.untilFree(b, "m");
    },
  },
  {
    title: "tokens strictly rise with every grant, for every client and every kind of lock",
    async run(context) {
      const clients = await Promise.all([1, 2, 3].map(() => context.open()));
      const hasShared = context.traits.modes.includes("shared");
      let last = 0n;
      for (let round = 0; round < 5; round += 1) {
        for (const locks of clients) {
          const { read, write } = hasShared
            ? locks.readWrite("m")
            : { read: locks.mutex("m"), write: locks.mutex("m") };
          const kinds = [locks.mutex("m"), read, write];
          for (const lock of hasShared ? [...kinds, locks.semaphore("m", 2)] : kinds) {
            const lease = await lock.acquire();
            assert.ok(lease.token > last, `${lease.token} does not exceed ${last}`);
            last = lease.token;
            await lease.release();
          }
        }
      }
    },
  },
];
