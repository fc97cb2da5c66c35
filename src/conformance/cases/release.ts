import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { channels, type ReleaseEvent } from "../../events/events.js";
import { claimOf } from "../claim.js";
import type { Behaviour } from "../needs.js";
import { needLeftovers } from "../needs.js";
import { BRIEF_WAIT_MS, PROMPT_MS, timesOut, until } from "../patience.js";

/** Long enough forevery reply to arrive: a request without a reply may leave state for a while. */
const MOMENT_MS = 20;
const ROUNDS = 10;

export const release: readonly Behaviour[] = [
  {
    title: "a second release never ends the lease of a later holder",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const first = await a.mutex("m").acquire();
      assert.equal(await first.release(), true);
      const second = await b.mutex("m").acquire();
      await first.release();
      await first[Symbol.asyncDispose]();
      assert.equal(await a.mutex("m").tryAcquire(), null);
      second.assertHeld();
      assert.equal(await second.release(), true);
    },
  },
  {
    title: "a release that is only sent does not stand in the way of its own process",
    async run(context) {
      const [a, b] = [await context.open({ release: "sent" }), await context.open()];
      // The channel has the events of other cases as well.
      const name = "only sent";
      const outcomes: unknown[] = [];
      const note = (published: unknown): void => {
        const event = published as ReleaseEvent;
        if (event.name === name) outcomes.push(event.outcome);
      };
      subscribe(channels.release, note);
      for (let round = 0; round < ROUNDS; round += 1) {
        const lease = await a.mutex(name).tryAcquire();
        assert.ok(lease, "the lock is free for the process that released it");
        assert.equal(await lease.release(), true);
        assert.equal(lease.state, "released");
        assert.equal(await a.mutex(name).run(() => round), round);
        assert.ok((await a.mutex(name).tryRun(() => round)).ran);
      }
      assert.deepEqual(a.held(), []);
      await context.untilFree(b, name, PROMPT_MS);
      await until("every release is told", () => outcomes.length >= 3 * ROUNDS);
      unsubscribe(channels.release, note);
      assert.ok(outcomes.every((outcome) => outcome === "released"));
    },
  },
  {
    title: "close waits for a release that is only sent",
    async run(context) {
      const [a, b] = [await context.open({ release: "sent" }), await context.open()];
      const leases = [await a.mutex("m").acquire(), await a.mutex("n").acquire()];
      await Promise.all(leases.map((lease) => lease.release()));
      await a.close();
      for (const name of ["m", "n"]) {
        const lease = await b.mutex(name).tryAcquire();
        assert.ok(lease, "nothing is held after close");
        await lease.release();
      }
    },
  },
  {
    title: "the store itself ignores a repeated release",
    async run(context) {
      const [a, b] = [await context.openStore(), await context.openStore()];
      // `bind` makes the context close the stores; the case calls the stores directly.
      const observer = context.bind(a);
      context.bind(b);
      const first = await a.acquire(claimOf(a, "m", context.ttl.longMs), null);
      assert.ok(first.type === "granted");
      assert.equal(await a.release(first, PROMPT_MS), true);
      const second = await b.acquire(claimOf(b, "m", context.ttl.longMs), null);
      assert.ok(second.type === "granted");
      assert.equal(await a.release(first, PROMPT_MS), false, "nothing is left to release");
      assert.equal(await observer.mutex("m").tryAcquire(), null);
      assert.equal(await b.release(second, PROMPT_MS), true);
    },
  },
  {
    title: "a release after the loss returns false and leaves the next lease alone",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const lost = await a.mutex("m").acquire({ ttlMs: context.ttl.shortMs, renew: false });
      const successor = await b.mutex("m").acquire();
      assert.equal(await lost.release(), false);
      assert.equal(await lost.release(), false);
      assert.equal(lost.state, "lost");
      await assert.rejects(lost.renew(), { code: "HF_LEASE_LOST" });
      assert.equal(await a.mutex("m").tryAcquire(), null, "the successor still holds it");
      successor.assertHeld();
      assert.equal(await successor.release(), true);
    },
  },
  {
    title: "a released lock leaves nothing in the store",
    needs: needLeftovers,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const hasShared = context.traits.modes.includes("shared");
      const use = async (index: number): Promise<void> => {
        const locks = index % 2 === 0 ? a : b;
        const name = `m${index % 5}`;
        const lock = index % 3 === 0 && hasShared ? locks.readWrite(name).read : locks.mutex(name);
        if (index % 4 === 0) await (await lock.tryAcquire())?.release();
        else await lock.run(() => sleep(MOMENT_MS));
      };
      await Promise.all(Array.from({ length: 40 }, (_, index) => use(index)));
      await a.election("seat").lead(() => sleep(MOMENT_MS));

      const held = await a.mutex("held").acquire({ fairness: "strict" });
      await timesOut(b.mutex("held").acquire({ waitMs: BRIEF_WAIT_MS }));
      // Both requests are in one batch: the store may hand off before it reports a waiter.
      const waiting = a.mutex("held").acquire({ fairness: "strict" });
      await held.release();
      const next = await waiting;
      await sleep(MOMENT_MS);
      await next.release();

      await a.mutex("closed").acquire();
      assert.equal(a.held().length, 1);
      await Promise.all([a.close(), b.close()]);
      assert.deepEqual(await context.leftovers(), []);
    },
  },
  {
    title: "a lock that was aborted, revoked or lost leaves nothing in the store past its ttl",
    needs: needLeftovers,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { renewedMs } = context.ttl;
      const options = { ttlMs: renewedMs, storeTimeoutMs: renewedMs };
      for (let round = 0; round < 10; round += 1) {
        const controller = new AbortController();
        const acquiring = a.mutex("aborted").acquire({ ...options, signal: controller.signal });
        controller.abort(new Error("gave up"));
        await acquiring.then(
          (lease) => lease.release(),
          () => undefined,
        );
      }
      const revoked = await a.mutex("revoked").acquire(options);
      await b.revoke("revoked", { token: revoked.token, reason: "test" });
      const lost = await a.mutex("lost").acquire({ ...options, renew: false });
      if (context.traits.marks) await a.once("done", () => 1, { ...options, keepMs: renewedMs });
      await until("the lease is over", () => lost.state === "lost");
      await Promise.all([a.close(), b.close()]);
      await until("nothing is left", async () => (await context.leftovers()).length === 0);
    },
  },
];
