import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { LeaseLostError } from "../../errors/index.js";
import type { Behaviour } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, until, within } from "../patience.js";

export const leaseTime: readonly Behaviour[] = [
  {
    title: "a lease that is not renewed expires, and the next waiter gets a higher token",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { shortMs } = context.ttl;
      const startMs = performance.now();
      const first = await a.mutex("m").acquire({ ttlMs: shortMs, renew: false });
      const takeover = b.mutex("m").acquire();
      const next = await within(2 * shortMs + PROMPT_MS, "the waiter takes over", takeover);
      const tookMs = performance.now() - startMs;
      assert.ok(tookMs >= shortMs * 0.95, `the lease of ${shortMs} ms was over after ${tookMs} ms`);
      assert.equal(first.state, "lost");
      assert.equal(first.remainingMs(), 0);
      assert.ok(next.token > first.token);
      next.assertHeld();
    },
  },
  {
    title: "with renew: false the lease lasts for its ttl and no longer",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { shortMs } = context.ttl;
      const askedMs = performance.now();
      const lease = await a.mutex("m").acquire({ ttlMs: shortMs, renew: false });
      const { signal } = lease;
      // A busy machine may see the end late, so the deadline counts too. All time counts from the
      // asking: on such a machine, much of the ttl may be over when the answer comes.
      const lastsMs = performance.now() - askedMs + lease.remainingMs();
      assert.ok(lastsMs >= shortMs * 0.9 - 20, `the lease of ${shortMs} ms is for ${lastsMs} ms`);
      await until("the signal aborts", () => signal.aborted, shortMs + PROMPT_MS);
      const tookMs = performance.now() - askedMs;
      assert.ok(
        tookMs >= shortMs * 0.9 - 20,
        `the lease of ${shortMs} ms ended after ${tookMs} ms`,
      );
      assert.equal(signal.reason.reason, "expired");
      await context.untilFree(b, "m", shortMs + PROMPT_MS);
    },
  },
  {
    title: "a ttl below the minimum of the store is refused",
    async run(context) {
      const locks = await context.open();
      const ttlMs = context.traits.minTtlMs - 1;
      const invalid = { code: "HF_INVALID_OPTION", option: "ttlMs" };
      await assert.rejects(locks.mutex("m").acquire({ ttlMs }), invalid);
      assert.throws(() => locks.mutex("m", { ttlMs }), invalid);
      const lease = await locks.mutex("m").acquire();
      await assert.rejects(lease.renew(ttlMs), invalid);
      await assert.rejects(lease.renew(Number.NaN), invalid);
      lease.assertHeld();
      assert.equal(await lease.release(), true);
    },
  },
  {
    title: "with maxHoldMs the lease ends after that time and the lock is free at once",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const maxHoldMs = 300;
      const startMs = performance.now();
      const lease = await a.mutex("m").acquire({ maxHoldMs });
      assert.ok(lease.remainingMs() <= maxHoldMs);
      const { signal } = lease;
      await until("the signal aborts", () => signal.aborted, maxHoldMs + PROMPT_MS);
      const tookMs = performance.now() - startMs;
      assert.ok(tookMs >= maxHoldMs - 2, `after ${tookMs} ms`);
      assert.ok(signal.reason instanceof LeaseLostError);
      assert.equal(signal.reason.reason, "max_hold");
      assert.equal(await lease.release(), false);
      await context.untilFree(b, "m", PROMPT_MS);
    },
  },
  {
    title: "with graceMs the signal aborts while the lease still holds",
    async run(context) {
      const locks = await context.open();
      const { renewedMs } = context.ttl;
      const graceMs = renewedMs * 0.45;
      const options = { ttlMs: renewedMs, graceMs, renew: false };
      const lease = await locks.mutex("m").acquire(options);
      const { signal } = lease;
      const atAbort = new Promise<{ state: string; remainingMs: number }>((resume) => {
        signal.addEventListener("abort", () => {
          resume({ state: lease.state, remainingMs: lease.remainingMs() });
        });
      });
      const { state, remainingMs } = await within(PATIENCE_MS, "the signal aborts", atAbort);
      assert.equal(state, "held");
      assert.ok(remainingMs > 0 && remainingMs <= graceMs, `${remainingMs} ms were left`);
      assert.ok(signal.reason instanceof LeaseLostError);
      await until("the lease ends", () => lease.state === "lost", renewedMs + PROMPT_MS);
    },
  },
  {
    title: "a lease that is released as soon as its signal aborts disturbs no other lease",
    async run(context) {
      const { renewedMs } = context.ttl;
      const locks = await context.open({ ttlMs: renewedMs });
      const kept = await Promise.all(["a", "b", "c"].map((name) => locks.mutex(name).acquire()));
      const options = { ttlMs: renewedMs, graceMs: renewedMs * 0.45, renew: false };
      const lease = await locks.mutex("m").acquire(options);
      const { signal } = lease;
      const released = new Promise<boolean>((resume) => {
        signal.addEventListener("abort", () => resume(lease.release()));
      });
      assert.equal(await within(PATIENCE_MS, "it is released", released), true);
      assert.equal(lease.state, "released");
      await sleep(renewedMs * 1.2);
      for (const other of kept) other.assertHeld();
      assert.equal(locks.held().length, 3);
    },
  },
];
