import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needChild } from "../needs.js";
import { PATIENCE_MS, within } from "../patience.js";

const lock = { kind: "mutex", name: "m" } as const;

export const closedClientExits: Behaviour = {
  title: "after close nothing is left that keeps the process alive",
  needs: needChild,
  async run(context) {
    const child = await context.child();
    await child.call("acquire", lock);
    const waiting = [
      child.call("acquire", lock),
      child.call("acquire", lock, { fairness: "strict" }),
      child.call("acquire", lock, { waitMs: 3_600_000 }),
    ];
    await child.call("close");
    for (const wait of waiting) await assert.rejects(wait, { code: "HF_CLOSED" });
    child.tell("leave");
    const exit = await within(PATIENCE_MS, "the process ends by itself", child.exited);
    assert.deepEqual(exit, { code: 0, signal: null, output: "" });
  },
};
