import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needAll, needChild, needExit } from "../needs.js";
import { PATIENCE_MS, within } from "../patience.js";

const lock = { kind: "mutex", name: "m" } as const;

export const waitingStays: Behaviour = {
  title: "an acquire that waits keeps its process alive until it is granted",
  needs: needAll(needChild, needExit),
  async run(context) {
    const child = await context.child();
    const holder = await child.call("acquire", lock);
    child.tell("leaveWaiting", lock, holder, 1_000);
    const exit = await within(PATIENCE_MS, "the process ends by itself", child.exited);
    assert.deepEqual(exit, { code: 0, signal: null, output: "granted\n" });
  },
};
