import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, within } from "../patience.js";

export const lateRenewal: Behaviour = {
  title: "a copy of a renewal that arrives after the release brings nothing back",
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
};
