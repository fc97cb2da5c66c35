import assert from "node:assert/strict";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS } from "../patience.js";

const reason = new Error("aborted by the test");

/** From "before anything was sent" to "about when the answer comes". */
const moments: readonly (() => Promise<unknown>)[] = [
  () => Promise.resolve(),
  () => new Promise<void>((resume) => process.nextTick(resume)),
  () => nextTurn(),
  async () => {
    await nextTurn();
    await nextTurn();
  },
  () => sleep(1),
  () => sleep(3),
];

export const abortInFlight: Behaviour = {
  title: "an abort while the request is under way leaves nothing held",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    for (const fairness of ["bounded", "strict"] as const) {
      for (const moment of [...moments, ...moments]) {
        const controller = new AbortController();
        const acquiring = a.mutex("m").acquire({ signal: controller.signal, fairness });
        await moment();
        controller.abort(reason);
        // Either it was quicker than the abort, or it fails with the reason and holds nothing.
        const lease = await acquiring.catch((error) => assert.equal(error, reason));
        await lease?.release();
        assert.deepEqual(a.held(), []);
        await context.untilFree(b, "m", PROMPT_MS);
      }
    }
  },
};
