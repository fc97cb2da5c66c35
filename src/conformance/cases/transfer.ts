import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import type { Behaviour } from "../needs.js";
import { needAll, needProcesses, needTransfer } from "../needs.js";
import { PROMPT_MS, until } from "../patience.js";

export const transfer: readonly Behaviour[] = [
  {
    title: "a detached lease outlives its client and continues in another one, with the same token",
    needs: needTransfer,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const ttlMs = 3 * context.ttl.renewedMs;
      const lease = await a.mutex("m").acquire({ transferable: true, ttlMs });
      const plain = await a.mutex("plain").acquire();
      assert.equal(plain.handle, null);
      assert.throws(() => plain.detach(), { code: "HF_UNSUPPORTED" });
      const handle = lease.detach();
      await a.close();
      assert.equal(
        await b.mutex("m").tryAcquire(),
        null,
        "close does not release a detached lease",
      );

      const resumed = await b.resume(handle);
      assert.ok(resumed);
      assert.equal(resumed.token, lease.token);
      assert.equal(resumed.name, "m");
      const firstMs = performance.now() + resumed.remainingMs();
      await until("the first deadline is past", () => performance.now() > firstMs);
      resumed.assertHeld();
      assert.equal(await resumed.release(), true);
      assert.equal(await b.resume(handle), null, "a handle ends with its lease");
      for (const malformed of ["", "hf1.", "hf1.e30", "nonsense", undefined, 7] as string[]) {
        await assert.rejects(b.resume(malformed), { code: "HF_INVALID_OPTION", option: "handle" });
      }
    },
  },
  {
    title: "a detached lease that another client renews outlives its deadline in the first client",
    needs: needTransfer,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { renewedMs } = context.ttl;
      const options = { transferable: true, ttlMs: renewedMs, graceMs: renewedMs / 4 };
      const lease = await a.mutex("m").acquire(options);
      const resumed = await b.resume(lease.detach());
      assert.ok(resumed);
      await until("its deadline in the first client is past", () => lease.state === "lost");
      // If the first client had sent a request to end the lease, it would come before this one.
      assert.equal(await a.mutex("m").tryAcquire(), null);
      await resumed.renew();
      assert.equal(await resumed.release(), true);
    },
  },
  {
    title: "a lease that one process detached continues in another one",
    needs: needAll(needTransfer, needProcesses),
    async run(context) {
      const locks = await context.open();
      const [giver, taker] = await context.children(2);
      assert.ok(giver && taker);
      const { longMs } = context.ttl;
      const options = { transferable: true, ttlMs: longMs };
      const token = await giver.call("acquire", { kind: "mutex", name: "m" }, options);
      const handle = await giver.call("detach", token);
      await giver.call("close");
      await giver.kill();
      assert.equal(await locks.mutex("m").tryAcquire(), null, "the lease is still held");
      assert.equal(await taker.call("resume", handle), token);
      assert.equal((await taker.call("report", token)).state, "held");
      assert.equal(await taker.call("release", token), true);
      await context.untilFree(locks, "m", PROMPT_MS);
    },
  },
  {
    title: "detaching a lease disturbs no other lease, also while renewals are under way",
    needs: needTransfer,
    async run(context) {
      const locks = await context.open({ ttlMs: context.ttl.renewedMs });
      const kept = await Promise.all(["a", "b", "c"].map((name) => locks.mutex(name).acquire()));
      const lease = await locks.mutex("m").acquire({ transferable: true });
      const renewing = lease.renew();
      lease.detach();
      await renewing;
      await assert.rejects(lease.renew(), { code: "HF_UNSUPPORTED" });
      assert.equal(await lease.release(), true, "without effect");
      assert.equal(await locks.mutex("m").tryAcquire(), null);
      await until("a ttl is over", () => lease.state === "lost", 2 * context.ttl.renewedMs);
      for (const other of kept) other.assertHeld();
      assert.equal(locks.held().length, 3);
    },
  },
  {
    title: "a lease that was renewed for longer goes on by its first handle",
    needs: needTransfer,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const { renewedMs } = context.ttl;
      const lease = await a.mutex("m").acquire({ transferable: true, ttlMs: renewedMs });
      const { handle } = lease;
      assert.ok(handle);
      await lease.renew(3 * renewedMs);
      lease.detach();
      await a.close();
      assert.equal(await b.mutex("m").tryAcquire(), null, "the lease is still held");
      const resumed = await b.resume(handle);
      assert.equal(resumed?.token, lease.token);
      assert.equal(await resumed?.release(), true);
      await context.untilFree(b, "m", PROMPT_MS);
    },
  },
  {
    title: "a client that releases a lease while it resumes it does not hold beside another one",
    needs: needTransfer,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      for (const pauses of [0, 1, 2, 5]) {
        const lease = await a.mutex("m").acquire({ transferable: true });
        const resuming = a.resume(lease.handle ?? "");
        for (let turn = 0; turn < pauses; turn += 1) await setImmediate();
        const releasing = lease.release();
        const [resumed] = await Promise.all([resuming, releasing]);
        const other = await b.mutex("m").tryAcquire();
        const holding = [resumed, other].filter((one) => one?.state === "held");
        assert.ok(holding.length < 2, `both hold, after ${pauses} turns of the event loop`);
        await Promise.all([resumed?.release(), other?.release()]);
        await context.untilFree(b, "m", PROMPT_MS);
      }
    },
  },
  {
    title: "a lease that is detached inside a run outlives the run",
    needs: needTransfer,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const handle = await a.mutex("m", { transferable: true }).run((lease) => lease.detach());
      assert.equal(await a.mutex("m").tryAcquire(), null, "run did not release it");
      const resumed = await b.resume(handle);
      assert.equal(resumed?.state, "held");
      assert.equal(await resumed?.release(), true);
      await context.untilFree(a, "m", PROMPT_MS);
    },
  },
  {
    title: "a client that resumed a lease is told of its revocation at once",
    needs: needTransfer,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      // When the client subscribes, it may learn of the first revocation by a request. It learns of
      // the second one only by a message, long before the first renewal.
      for (const name of ["first", "second"]) {
        const lease = await a.mutex(name).acquire({ transferable: true, ttlMs: 10 * PROMPT_MS });
        const resumed = await b.resume(lease.detach());
        assert.ok(resumed);
        const { signal, token } = resumed;
        assert.equal(await a.revoke(name, { token, reason: "test" }), true);
        await until("the holder learns of the loss", () => signal.aborted, PROMPT_MS);
        assert.throws(() => resumed.assertHeld(), { code: "HF_LEASE_LOST" });
        assert.equal(await resumed.release(), false);
      }
    },
  },
];
