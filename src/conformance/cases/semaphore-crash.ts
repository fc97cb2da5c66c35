import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needAll, needProcesses, needShared } from "../needs.js";
import { isSettled, PROMPT_MS, within } from "../patience.js";

export const semaphoreCrash: Behaviour = {
  title: "the permits of a killed process come back",
  needs: needAll(needShared, needProcesses),
  async run(context) {
    const [locks, child] = [await context.open(), await context.child()];
    const { renewedMs } = context.ttl;
    const options = { ttlMs: renewedMs, weight: 2 };
    await child.call("acquire", { kind: "semaphore", name: "s", limit: 3 }, options);
    const other = await locks.semaphore("s", 3).acquire();
    const waiting = locks.semaphore("s", 3).acquire({ weight: 2 });
    assert.equal(await isSettled(waiting, 50), false);
    await child.kill();
    await within(2 * renewedMs + PROMPT_MS, "the permits come back", waiting);
    other.assertHeld();
  },
};
