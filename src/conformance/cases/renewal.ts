import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { StoreError } from "../../errors/index.js";
import { altered } from "../altered.js";
import type { Behaviour } from "../needs.js";
import { until } from "../patience.js";

export const renewal: readonly Behaviour[] = [
  {
    title: "a lease is renewed for as long as it is held",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const ttlMs = 3 * context.ttl.renewedMs;
      const lease = await a.mutex("m").acquire({ ttlMs });
      const endMs = (): number => performance.now() + lease.remainingMs();
      const firstMs = endMs();
      await until("a renewal moves the deadline", () => endMs() > firstMs + ttlMs / 10);
      await until("the first deadline is past", () => performance.now() > firstMs);
      lease.assertHeld();
      assert.ok(lease.remainingMs() <= ttlMs);
      assert.equal(await b.mutex("m").tryAcquire(), null);
      assert.equal(await lease.release(), true);
    },
  },
  {
    title: "renew by hand makes a lease last longer, never shorter",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { renewedMs } = context.ttl;
      const lease = await a.mutex("m").acquire({ ttlMs: renewedMs, renew: false });
      await lease.renew(3 * renewedMs);
      assert.ok(lease.remainingMs() > 2 * renewedMs);
      await lease.renew(renewedMs);
      assert.ok(lease.remainingMs() > 1.5 * renewedMs, "a renewal does not shorten");
      await sleep(renewedMs * 1.2);
      lease.assertHeld();
      assert.equal(await b.mutex("m").tryAcquire(), null);
      assert.equal(await lease.release(), true);
    },
  },
  {
    title: "a renewal that fails once and recovers keeps the lease",
    async run(context) {
      const store = await context.openStore();
      let calls = 0;
      const failing = altered(store, {
        async renew(grants) {
          calls += 1;
          if (calls === 1) throw new StoreError("the renewal failed", { outcome: "unknown" });
          if (calls > 2) return store.renew(grants);
          return grants.map(() => ({ type: "unknown", error: new Error("no answer") }));
        },
      });
      const [a, b] = [context.bind(failing), await context.open()];
      const lease = await a.mutex("m").acquire({ ttlMs: 3 * context.ttl.renewedMs });
      const firstMs = performance.now() + lease.remainingMs();
      await until("it was tried again", () => calls > 2);
      await until("the first deadline is past", () => performance.now() > firstMs);
      lease.assertHeld();
      assert.equal(lease.signal.aborted, false);
      assert.equal(await b.mutex("m").tryAcquire(), null);
      assert.equal(await lease.release(), true);
    },
  },
];
