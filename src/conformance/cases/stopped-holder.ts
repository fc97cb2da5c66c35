import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needStopping } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

const lock = { kind: "mutex", name: "m" } as const;

export const stoppedHolder: Behaviour = {
  title: "a process that was stopped past its ttl finds its lease lost and its successor intact",
  needs: needStopping,
  async run(context) {
    const [locks, child] = [await context.open(), await context.child()];
    const { renewedMs } = context.ttl;
    const token = await child.call("acquire", lock, { ttlMs: renewedMs });
    await child.stop();
    const waiting = locks.mutex("m").acquire();
    const lease = await within(2 * renewedMs + PROMPT_MS, "the waiter takes over", waiting);
    assert.ok(lease.token > token);

    // The call is there when it wakes up: the first thing it does is to ask its lease.
    const reporting = child.call("report", token);
    child.resume();
    const report = await within(PROMPT_MS, "it answers", reporting);
    assert.deepEqual(report, { state: "lost", remainingMs: 0, assertion: "HF_LEASE_LOST" });
    await within(PROMPT_MS, "it is told", child.lost(token));
    assert.equal(await child.call("release", token), false);
    lease.assertHeld();
    const { holders } = await locks.inspect("m");
    assert.deepEqual(
      holders.map((holder) => holder.token),
      [lease.token],
    );
    assert.equal(await lease.release(), true);
  },
};
