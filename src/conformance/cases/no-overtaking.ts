import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFifo } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

const strict = { fairness: "strict" } as const;

export const noOvertaking: Behaviour = {
  title: "a try does not overtake those who wait",
  needs: needFifo,
  async run(context) {
    const [a, b] = [await context.openKnown(strict), await context.openKnown(strict)];
    const held = await a.mutex("m").acquire();
    const waiting = b.mutex("m").acquire();
    await context.untilWaiting(a, "m", 1);
    const [, tried] = await Promise.all([held.release(), a.mutex("m").tryAcquire()]);
    assert.equal(tried, null);
    const next = await within(PROMPT_MS, "the waiter is served", waiting);
    await next.release();
  },
};
