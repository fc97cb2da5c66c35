import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, within } from "../patience.js";

export const lostTryReply: Behaviour = {
  title: "a try whose answer is lost ends with the lock or with nothing held",
  needs: needFaults("loseReply"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const observer = await context.open();
    await (await locks.mutex("warm").acquire()).release();
    const fault = await faults.loseReply("acquire");
    const trying = locks.mutex("m").tryAcquire();
    await within(PATIENCE_MS, "the answer is lost", fault.struck);
    const lease = await within(PATIENCE_MS, "the try ends", trying);
    if (lease) assert.equal(await lease.release(), true);
    await context.untilFree(observer, "m", PROMPT_MS);
  },
};
