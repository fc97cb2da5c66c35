import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needProcesses } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

const reason = "stuck deploy";

export const revokeInProcess: Behaviour = {
  title: "a holder in another process is told of its revocation at once",
  needs: needProcesses,
  async run(context) {
    const [locks, child] = [await context.open(), await context.child()];
    const { longMs } = context.ttl;
    const token = await child.call("acquire", { kind: "mutex", name: "m" }, { ttlMs: longMs });
    assert.equal(await locks.revoke("m", { token, reason }), true);
    const lost = await within(PROMPT_MS, "the victim is told", child.lost(token));
    assert.equal(lost.reason, "revoked");
    await context.untilFree(locks, "m", PROMPT_MS);
  },
};
