import assert from "node:assert/strict";
import { StoreError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

export const unreachableWaiting: Behaviour = {
  title: "a waiter endures the silence of the store for storeTimeoutMs, and leaves no place behind",
  needs: needFaults("cut", "heal"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const other = await context.open();
    const held = await other.mutex("m").acquire();
    const waiting = locks.mutex("m").acquire({ storeTimeoutMs: 600 });
    await context.untilWaiting(other, "m", 1);
    await faults.cut();
    const ended = waiting.catch((reason) => reason);
    const error = await within(600 + PROMPT_MS, "the wait ends", ended);
    assert.ok(error instanceof StoreError, String(error));
    await faults.heal();
    await held.release();
    await context.untilFree(other, "m");
  },
};
