import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, within } from "../patience.js";

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
      const { renewedMs } = context.ttl;
      const lease = await locks.mutex("m").acquire({ ttlMs: renewedMs });
      const late = await faults.keepBack("renew");
      await within(renewedMs + PROMPT_MS, "a renewal is kept back", late.struck);
      assert.equal(await lease.release(), true);
      await within(PATIENCE_MS, "the copy arrives", late.deliver());
      assert.deepEqual((await other.inspect("m")).holders, []);
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
