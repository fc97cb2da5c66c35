import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needProcesses } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

const lock = { kind: "mutex", name: "m" } as const;

export const killedHolder: Behaviour = {
  title: "the lock of a killed process is granted to the next when its lease is over",
  needs: needProcesses,
  async run(context) {
    const [locks, child] = [await context.open(), await context.child()];
    const { renewedMs } = context.ttl;
    const token = await child.call("acquire", lock, { ttlMs: renewedMs });
    const waiting = locks.mutex("m").acquire();
    await child.kill();
    const lease = await within(2 * renewedMs + PROMPT_MS, "the waiter takes over", waiting);
    assert.ok(lease.token > token);
  },
};
