import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needAll, needFifo, needShared } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

export const abandonedWriter: Behaviour = {
  title: "readers behind a writer that gives up are served at once",
  needs: needAll(needShared, needFifo),
  async run(context) {
    const [a, b] = [await context.openKnown(), await context.openKnown()];
    await a.readWrite("m").read.acquire();
    const controller = new AbortController();
    const writing = b.readWrite("m").write.acquire({ signal: controller.signal });
    await context.untilWaiting(a, "m", 1);
    const reading = a.readWrite("m").read.acquire();
    await context.untilWaiting(a, "m", 2);
    controller.abort(new Error("gave up"));
    await assert.rejects(writing, { message: "gave up" });
    await within(PROMPT_MS, "the reader joins the other", reading);
  },
};
