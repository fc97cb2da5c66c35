import assert from "node:assert/strict";
import { StoreError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, within } from "../patience.js";

export const unreachableAcquire: Behaviour = {
  title: "an acquire endures the silence of the store for storeTimeoutMs, then holds nothing",
  needs: needFaults("cut", "heal"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const other = await context.open();
    await (await locks.mutex("warm").acquire()).release();
    await faults.cut();
    const startMs = performance.now();
    const acquiring = locks.mutex("m").acquire({ storeTimeoutMs: 500 });
    const error = await within(
      PATIENCE_MS,
      "the acquire ends",
      acquiring.catch((e) => e),
    );
    const tookMs = performance.now() - startMs;
    assert.ok(error instanceof StoreError, String(error));
    assert.equal(error.lockName, "m");
    assert.ok(tookMs >= 450 && tookMs < 500 + PROMPT_MS, `it took ${tookMs} ms`);
    await faults.heal();
    await context.untilFree(other, "m");
    await (await locks.mutex("m").acquire()).release();
  },
};
