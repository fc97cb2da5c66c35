import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";
import { needStopping } from "../needs.js";

const lock = { kind: "mutex", name: "m" } as const;

export const brieflyStopped: Behaviour = {
  title: "a process that was stopped for less than its ttl keeps its lease",
  needs: needStopping,
  async run(context) {
    const [locks, child] = [await context.open(), await context.child()];
    const ttlMs = 2 * context.ttl.renewedMs;
    const token = await child.call("acquire", lock, { ttlMs });
    await child.stop();
    // Longer than the time to the next renewal, which so comes late.
    await sleep(ttlMs * 0.45);
    child.resume();
    await sleep(ttlMs * 0.75);
    assert.equal((await child.call("report", token)).state, "held");
    assert.equal(await locks.mutex("m").tryAcquire(), null);
    assert.equal(await child.call("release", token), true);
  },
};
