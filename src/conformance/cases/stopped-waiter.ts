import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needAll, needFifo, needStopping } from "../needs.js";
import { passOver } from "../pass-over.js";
import { PATIENCE_MS, within } from "../patience.js";

export const stoppedWaiter: Behaviour = {
  title: "a waiter that is stopped is passed over, and served when it goes on",
  needs: needAll(needFifo, needStopping),
  run: (context) =>
    passOver(
      context,
      (second) => second.stop(),
      async (second, acquiring) => {
        second.resume();
        const token = await within(PATIENCE_MS, "the stopped one gets its turn", acquiring);
        assert.equal((await second.call("report", token)).state, "held");
      },
    ),
};
