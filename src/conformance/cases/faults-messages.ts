import assert from "node:assert/strict";
import { type Behaviour, needFaults } from "../needs.js";
import { isSettled, PATIENCE_MS, PROMPT_MS, until, within } from "../patience.js";

/** How often a waiter may be served before it listens. */
const MAX_ROUNDS = 10;
/** A renewal is repeated after a quarter of the remaining time, and its reply takes a moment. */
const NOTICED_PART = 0.4;

export const faultsLostMessages: readonly Behaviour[] = [
  {
    title: "an acquire whose reply is lost ends with one holder and the token of the first grant",
    needs: needFaults("loseReply"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const observer = await context.open();
      // The connection is open before the fault is armed, so that the fault hits the acquire.
      await (await locks.mutex("warm").acquire()).release();
      const fault = await faults.loseReply("acquire");
      const acquiring = locks.mutex("m").acquire();
      await within(PATIENCE_MS, "the reply is lost", fault.struck);
      const tokens = new Set<bigint>();
      do {
        const { holders } = await observer.inspect("m");
        assert.ok(holders.length <= 1);
        for (const { token } of holders) tokens.add(token);
      } while (!(await isSettled(acquiring)));
      const lease = await acquiring;
      assert.deepEqual([...tokens], [lease.token], "the lease is the first grant");
      assert.equal((await observer.inspect("m")).holders.length, 1);
      assert.equal(await lease.release(), true);
      await context.untilFree(observer, "m", PROMPT_MS);
    },
  },
  {
    title: "a try whose reply is lost ends with a lease or with nothing held",
    needs: needFaults("loseReply"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const observer = await context.open();
      await (await locks.mutex("warm").acquire()).release();
      const fault = await faults.loseReply("acquire");
      const trying = locks.mutex("m").tryAcquire();
      await within(PATIENCE_MS, "the reply is lost", fault.struck);
      const lease = await within(PATIENCE_MS, "the try ends", trying);
      if (lease) assert.equal(await lease.release(), true);
      await context.untilFree(observer, "m", PROMPT_MS);
    },
  },
  {
    title: "a release that is repeated after its reply was lost leaves the next lease intact",
    needs: needFaults("loseReply"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const other = await context.open();
      const first = await locks.mutex("m").acquire();
      const waiting = other.mutex("m").acquire();
      await context.untilWaiting(other, "m", 1);
      const fault = await faults.loseReply("release");
      const releasing = first.release();
      await within(PATIENCE_MS, "the reply is lost", fault.struck);
      const successor = await within(PATIENCE_MS, "the successor is granted", waiting);
      assert.equal(await within(PATIENCE_MS, "the release ends", releasing), true);
      successor.assertHeld();
      const { holders } = await other.inspect("m");
      assert.deepEqual(
        holders.map(({ token }) => token),
        [successor.token],
      );
      assert.equal(await locks.mutex("m").tryAcquire(), null);
      assert.equal(await successor.release(), true);
    },
  },
  {
    title: "a release that was only sent is repeated when its reply was lost",
    needs: needFaults("loseReply"),
    async run(context) {
      const { locks, faults } = await context.openFaulty({ release: "sent" });
      const other = await context.open();
      await (await locks.mutex("warm").acquire()).release();
      const lease = await locks.mutex("m").acquire();
      const fault = await faults.loseReply("release");
      assert.equal(await lease.release(), true);
      await within(PATIENCE_MS, "the reply is lost", fault.struck);
      const next = await within(PATIENCE_MS, "it is granted again", locks.mutex("m").acquire());
      assert.ok(next.token > lease.token);
      next.assertHeld();
      assert.equal(await other.mutex("m").tryAcquire(), null, "the repeat spares the next lease");
      assert.equal(await next.release(), true);
      await context.untilFree(other, "m", PROMPT_MS);
    },
  },
  {
    title: "a renewal whose reply is lost is soon repeated and keeps the lease",
    needs: needFaults("loseReply"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const other = await context.open();
      const ttlMs = 4 * context.ttl.renewedMs;
      const lease = await locks.mutex("m").acquire({ ttlMs });
      const deadlineMs = performance.now() + lease.remainingMs();
      const fault = await faults.loseReply("renew");
      await within(ttlMs + PROMPT_MS, "a reply is lost", fault.struck);
      const leftMs = deadlineMs - performance.now();
      const isRenewed = () => performance.now() + lease.remainingMs() > deadlineMs + ttlMs / 4;
      await until("the renewal is repeated", isRenewed, leftMs * NOTICED_PART);
      await until("the first deadline is past", () => performance.now() > deadlineMs);
      lease.assertHeld();
      assert.equal(await other.mutex("m").tryAcquire(), null);
      assert.equal(await lease.release(), true);
    },
  },
  {
    title: "a waiter whose wake-up message is lost acquires the lock by asking again",
    needs: needFaults("dropPush"),
    async run(context) {
      const holder = await context.open();
      const { locks, faults } = await context.openFaulty();
      const { renewedMs } = context.ttl;
      let struck: Promise<boolean> | undefined;
      let hasStruck = false;
      // A waiter that the store shows may not listen yet: then there is no message to lose.
      for (let round = 0; !hasStruck && round < MAX_ROUNDS; round += 1) {
        const held = await holder.mutex("m").acquire();
        const waiting = locks.mutex("m").acquire({ ttlMs: renewedMs });
        await context.untilWaiting(holder, "m", 1);
        struck ??= (await faults.dropPush()).struck.then(() => true);
        await held.release();
        const served = waiting.then(() => false);
        hasStruck = await within(
          PATIENCE_MS,
          "the waiter is woken",
          Promise.race([struck, served]),
        );
        const lease = await within(2 * renewedMs + PROMPT_MS, "the waiter asks again", waiting);
        lease.assertHeld();
        assert.ok(lease.token > held.token);
        assert.equal(await lease.release(), true);
      }
      assert.ok(hasStruck, "no wake-up was sent");
    },
  },
];

export const faultsLateCopies: readonly Behaviour[] = [
  {
    title: "a late copy of an acquire, after its lease was released, holds nothing",
    needs: needFaults("keepBack"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const other = await context.open();
      await (await locks.mutex("warm").acquire()).release();
      const late = await faults.keepBack("acquire");
      const acquiring = locks.mutex("m").acquire();
      await within(PATIENCE_MS, "the request is kept back", late.struck);
      const lease = await within(PATIENCE_MS, "it is sent once more", acquiring);
      assert.equal(await lease.release(), true);
      await within(PATIENCE_MS, "the copy arrives", late.deliver());
      assert.deepEqual((await other.inspect("m")).holders, []);
      const next = await other.mutex("m").tryAcquire();
      assert.ok(next, "the late copy holds nothing");
    },
  },
  {
    title: "a late copy of a renewal, after the release, restores nothing",
    needs: needFaults("keepBack"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const other = await context.open();
      // A restored lease would stay for longer than the lock may take to look free.
      const ttlMs = 3 * context.ttl.renewedMs;
      const lease = await locks.mutex("m").acquire({ ttlMs });
      const late = await faults.keepBack("renew");
      await within(ttlMs + PROMPT_MS, "a renewal is kept back", late.struck);
      assert.equal(await lease.release(), true);
      await within(PATIENCE_MS, "the copy arrives", late.deliver());
      // A majority has answered the release. A look may count a node that it has not reached yet.
      const isUnheld = async () => (await other.inspect("m")).holders.length === 0;
      await until("nobody holds it", isUnheld, PROMPT_MS);
      await context.untilFree(other, "m", PROMPT_MS);
    },
  },
  {
    title: "a late copy of a release leaves the next lease intact",
    needs: needFaults("keepBack"),
    async run(context) {
      const { locks, faults } = await context.openFaulty();
      const other = await context.open();
      const lease = await locks.mutex("m").acquire();
      const late = await faults.keepBack("release");
      const releasing = lease.release();
      await within(PATIENCE_MS, "the release is kept back", late.struck);
      assert.equal(await within(PATIENCE_MS, "it is sent once more", releasing), true);
      const successor = await within(PROMPT_MS, "the lock is free", other.mutex("m").acquire());
      await within(PATIENCE_MS, "the copy arrives", late.deliver());
      assert.equal(await locks.mutex("m").tryAcquire(), null);
      successor.assertHeld();
      assert.equal(await successor.release(), true);
    },
  },
];
