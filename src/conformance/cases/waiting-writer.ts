import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needAll, needFifo, needShared } from "../needs.js";
import { isSettled, PROMPT_MS, within } from "../patience.js";

export const waitingWriter: Behaviour = {
  title: "a waiting writer stops new readers, who are served together after it",
  needs: needAll(needShared, needFifo),
  async run(context) {
    const [a, b] = [await context.openKnown(), await context.openKnown()];
    const reader = await a.readWrite("m").read.acquire();
    const writing = b.readWrite("m").write.acquire();
    await context.untilWaiting(a, "m", 1);
    assert.equal(await a.readWrite("m").read.tryAcquire(), null, "no new reader gets past");
    const reading = [a.readWrite("m").read.acquire(), b.readWrite("m").read.acquire()];
    await context.untilWaiting(a, "m", 3);
    await reader.release();
    const writer = await within(PROMPT_MS, "the writer is served", writing);
    assert.equal(await isSettled(Promise.race(reading), 50), false);
    await writer.release();
    await within(PROMPT_MS, "both readers are served", Promise.all(reading));
  },
};
