import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needAll, needFifo, needShared } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

export const semaphoreWeights: Behaviour = {
  title: "a heavy request is not overtaken by light ones that would fit",
  needs: needAll(needShared, needFifo),
  async run(context) {
    const [a, b] = [await context.openKnown(), await context.openKnown()];
    const light = await a.semaphore("s", 4).acquire({ weight: 2 });
    const heavy = b.semaphore("s", 4).acquire({ weight: 4 });
    await context.untilWaiting(a, "s", 1);
    assert.equal(await a.semaphore("s", 4).tryAcquire(), null, "nobody gets past who waits");
    await light.release();
    const lease = await within(PROMPT_MS, "the heavy one is served", heavy);
    assert.equal(await a.semaphore("s", 4).tryAcquire(), null);
    await lease.release();
    const over = { weight: 5 };
    await assert.rejects(a.semaphore("s", 4).acquire(over), { code: "HF_INVALID_OPTION" });
  },
};
