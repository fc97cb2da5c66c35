import assert from "node:assert/strict";
import { StoreError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

/** Longer than a store on a busy machine takes to answer, so that only the cut is a silence. */
const SILENCE_MS = 2_000;

export const unreachableWaiting: Behaviour = {
  title: "a waiter endures the silence of the store for storeTimeoutMs, and leaves no place behind",
  needs: needFaults("cut", "heal"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const other = await context.open();
    const held = await other.mutex("m").acquire();
    const waiting = locks.mutex("m").acquire({ storeTimeoutMs: SILENCE_MS });
    // Awaited only later: until then a wait that ends must not be an unhandled rejection.
    const ended = waiting.catch((reason) => reason);
    await context.untilWaiting(other, "m", 1);
    await faults.cut();
    const error = await within(SILENCE_MS + PROMPT_MS, "the wait ends", ended);
    assert.ok(error instanceof StoreError, String(error));
    await faults.heal();
    await held.release();
    await context.untilFree(other, "m");
  },
};
