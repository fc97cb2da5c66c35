import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { isSettled, PATIENCE_MS, PROMPT_MS, within } from "../patience.js";

export const lostAcquireReply: Behaviour = {
  title: "an acquire whose answer is lost is retried to one hold with the same token",
  needs: needFaults("loseReply"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const observer = await context.open();
    // The connection is there before the fault, so that it is the acquire which is hit.
    await (await locks.mutex("warm").acquire()).release();
    const fault = await faults.loseReply("acquire");
    const acquiring = locks.mutex("m").acquire();
    await within(PATIENCE_MS, "the answer is lost", fault.struck);
    const tokens = new Set<bigint>();
    do {
      const { holders } = await observer.inspect("m");
      assert.ok(holders.length <= 1);
      for (const { token } of holders) tokens.add(token);
    } while (!(await isSettled(acquiring)));
    const lease = await acquiring;
    assert.deepEqual([...tokens], [lease.token], "the first grant is the one that was returned");
    assert.equal((await observer.inspect("m")).holders.length, 1);
    assert.equal(await lease.release(), true);
    await context.untilFree(observer, "m", PROMPT_MS);
  },
};
