import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needTransfer } from "../needs.js";
import { PROMPT_MS } from "../patience.js";

export const detachInRun: Behaviour = {
  title: "a lease that is detached inside a run outlives the run",
  needs: needTransfer,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const handle = await a.mutex("m", { transferable: true }).run((lease) => lease.detach());
    assert.equal(await a.mutex("m").tryAcquire(), null, "it was handed over, not released");
    const resumed = await b.resume(handle);
    assert.equal(resumed?.state, "held");
    assert.equal(await resumed?.release(), true);
    await context.untilFree(a, "m", PROMPT_MS);
  },
};
