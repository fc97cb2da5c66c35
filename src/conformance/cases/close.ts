import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors/index.js";
import type { Behaviour } from "../needs.js";
import { needAll, needChild, needExit } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, within } from "../patience.js";

const lock = { kind: "mutex", name: "m" } as const;

export const close: readonly Behaviour[] = [
  {
    title: "close releases everything that is held and ends every wait",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const hasShared = context.traits.modes.includes("shared");
      const leases = [
        await a.mutex("turns").acquire(),
        await a.mutex("strict").acquire({ fairness: "strict" }),
        await a.mutex("fixed").acquire({ renew: false }),
        await a.election("seat").campaign(),
      ];
      if (hasShared) leases.push(await a.readWrite("shared").read.acquire());
      const blocked = await b.mutex("blocked").acquire();
      const waiting = [
        a.mutex("blocked").acquire(),
        a.mutex("blocked").acquire({ fairness: "strict" }),
        a.mutex("turns").acquire(),
        a.mutex("turns").run(() => assert.fail("ran after close")),
        a.election("seat").campaign({ fairness: "strict" }),
      ];
      const ends = waiting.map((wait) =>
        wait.then(
          () => "granted",
          (error) => error.code,
        ),
      );
      assert.equal(a.held().length, leases.length);

      await within(PROMPT_MS + 5_000, "close ends", a.close());
      assert.deepEqual(
        await Promise.all(ends),
        ends.map(() => "HF_CLOSED"),
      );
      assert.deepEqual(a.held(), []);
      for (const lease of leases) assert.notEqual(lease.state, "held");
      for (const name of ["turns", "strict", "fixed"]) await context.untilFree(b, name, PROMPT_MS);
      const elected = b.election("seat").campaign();
      await within(PROMPT_MS, "the election is free", elected);
      if (hasShared) await context.untilFree(b, "shared", PROMPT_MS);
      assert.deepEqual((await b.inspect("blocked")).waiters, []);
      blocked.assertHeld();
    },
  },
  {
    title: "close aborts the signal of every held lease, and a run under way rejects",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      let [inside, end] = [() => {}, () => {}];
      const started = new Promise<void>((resume) => {
        inside = resume;
      });
      const running = a.mutex("m").run(async (lease) => {
        const ended = new Promise<void>((resume) => {
          end = resume;
        });
        lease.signal.addEventListener("abort", () => end());
        inside();
        await ended;
        assert.throws(() => lease.assertHeld(), { code: "HF_LEASE_LOST" });
        return "too late";
      });
      running.catch(() => undefined);
      await started;
      await a.close();
      const ended = within(PROMPT_MS, "the body ends", running);
      await assert.rejects(ended, (error) => {
        assert.ok(error instanceof LeaseLostError);
        assert.equal(error.value, "too late");
        return true;
      });
      await context.untilFree(b, "m", PROMPT_MS);
    },
  },
  {
    title: "every call on a closed client rejects with HF_CLOSED",
    async run(context) {
      const locks = await context.open();
      const [lock, election] = [locks.mutex("m"), locks.election("e")];
      const lease = await lock.acquire();
      await Promise.all([locks.close(), locks.close(), locks[Symbol.asyncDispose]()]);
      const closedCode = { code: "HF_CLOSED" };
      await assert.rejects(lock.acquire(), closedCode);
      await assert.rejects(lock.tryAcquire(), closedCode);
      await assert.rejects(
        lock.run(() => assert.fail("ran")),
        closedCode,
      );
      await assert.rejects(locks.all([lock]).acquire(), closedCode);
      await assert.rejects(election.campaign(), closedCode);
      await assert.rejects(election.leader(), closedCode);
      await assert.rejects(election.observe().next(), closedCode);
      await assert.rejects(locks.inspect("m"), closedCode);
      await assert.rejects(locks.list().next(), closedCode);
      await assert.rejects(locks.revoke("m", { token: lease.token, reason: "test" }), closedCode);
      if (context.traits.marks) {
        await assert.rejects(
          locks.once("o", () => 1, { keepMs: 1_000 }),
          closedCode,
        );
      }
      if (context.traits.transferable) await assert.rejects(locks.resume("hf1."), closedCode);
      await lease.release();
      await locks.close();
    },
  },
  {
    title: "a held lease does not keep its process alive",
    needs: needAll(needChild, needExit),
    async run(context) {
      const child = await context.child();
      await child.call("acquire", lock, { ttlMs: context.ttl.renewedMs });
      await child.call("acquire", { ...lock, name: "strict" }, { fairness: "strict" });
      child.tell("leave");
      const exit = await within(PATIENCE_MS, "the process ends by itself", child.exited);
      assert.deepEqual(exit, { code: 0, signal: null, output: "" });
    },
  },
  {
    title: "after close nothing keeps the process alive",
    needs: needChild,
    async run(context) {
      const child = await context.child();
      await child.call("acquire", lock);
      const waiting = [
        child.call("acquire", lock),
        child.call("acquire", lock, { fairness: "strict" }),
        child.call("acquire", lock, { waitMs: 3_600_000 }),
      ];
      await child.call("close");
      for (const wait of waiting) await assert.rejects(wait, { code: "HF_CLOSED" });
      child.tell("leave");
      const exit = await within(PATIENCE_MS, "the process ends by itself", child.exited);
      assert.deepEqual(exit, { code: 0, signal: null, output: "" });
    },
  },
  {
    title: "a waiting acquire keeps its process alive until it is granted",
    needs: needAll(needChild, needExit),
    async run(context) {
      const child = await context.child();
      const holder = await child.call("acquire", lock);
      child.tell("leaveWaiting", lock, holder, 1_000);
      const exit = await within(PATIENCE_MS, "the process ends by itself", child.exited);
      assert.deepEqual(exit, { code: 0, signal: null, output: "granted\n" });
    },
  },
];
