import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, within } from "../patience.js";

const reason = new Error("aborted by the test");
const isReason = (error: unknown): boolean => error === reason;

export const abortWaiting: Behaviour = {
  title: "an abort ends the wait at once and leaves the queue",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const held = await a.mutex("m").acquire();
    for (const fairness of ["bounded", "strict"] as const) {
      const controller = new AbortController();
      const waiting = b.mutex("m").acquire({ signal: controller.signal, fairness });
      await context.untilWaiting(a, "m", 1);
      controller.abort(reason);
      await assert.rejects(within(PROMPT_MS, "the abort is heard", waiting), isReason);
      await context.untilWaiting(a, "m", 0, PROMPT_MS);
    }
    await held.release();
    await context.untilFree(a, "m", PROMPT_MS);
  },
};
