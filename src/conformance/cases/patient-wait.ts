import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";
import { PATIENCE_MS, within } from "../patience.js";

const storeTimeoutMs = 3_000;

export const patientWait: Behaviour = {
  title: "to wait for longer than storeTimeoutMs is no silence of the store",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const held = await a.mutex("m").acquire();
    const served = (["bounded", "strict"] as const).map(async (fairness) => {
      const lease = await b.mutex("m").acquire({ storeTimeoutMs, fairness });
      return lease.release();
    });
    const early = await Promise.race([...served, sleep(1.5 * storeTimeoutMs, "they wait")]);
    assert.equal(early, "they wait");
    await held.release();
    const all = within(PATIENCE_MS, "both are served", Promise.all(served));
    assert.deepEqual(await all, [true, true]);
  },
};
