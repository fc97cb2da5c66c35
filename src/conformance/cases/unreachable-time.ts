import assert from "node:assert/strict";
import { StoreError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

export const unreachableTime: Behaviour = {
  title: "a wait and a try end in their time when the store is silent, and tell so",
  needs: needFaults("cut", "heal"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    await (await locks.mutex("warm").acquire()).release();
    await faults.cut();
    const waiting = locks.mutex("m").acquire({ waitMs: 300 });
    const late = await within(
      300 + PROMPT_MS,
      "the wait ends",
      waiting.catch((error) => error),
    );
    assert.ok(late instanceof StoreError, `an outage is no held lock: ${late}`);
    const trying = locks.mutex("m").tryAcquire({ storeTimeoutMs: 300 });
    const error = await within(
      300 + PROMPT_MS,
      "the try ends",
      trying.catch((reason) => reason),
    );
    assert.ok(error instanceof StoreError, String(error));
    await faults.heal();
    await context.untilFree(locks, "m");
  },
};
