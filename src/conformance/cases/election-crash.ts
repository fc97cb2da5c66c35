import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needProcesses } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

export const electionCrash: Behaviour = {
  title: "when the leader is killed, another is elected",
  needs: needProcesses,
  async run(context) {
    const [locks, child] = [await context.open(), await context.child()];
    const { renewedMs } = context.ttl;
    const seat = { kind: "election", name: "seat" } as const;
    const token = await child.call("acquire", seat, { ttlMs: renewedMs });
    const leading = locks.election("seat").lead((lease) => lease.token);
    await child.kill();
    const next = await within(2 * renewedMs + PROMPT_MS, "another leads", leading);
    assert.ok(next > token);
  },
};
