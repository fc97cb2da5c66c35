import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needAll, needChild, needExit } from "../needs.js";
import { PATIENCE_MS, within } from "../patience.js";

const lock = { kind: "mutex", name: "m" } as const;

export const heldLeaseExits: Behaviour = {
  title: "a held lease does not keep its process alive",
  needs: needAll(needChild, needExit),
  async run(context) {
    const child = await context.child();
    await child.call("acquire", lock, { ttlMs: context.ttl.renewedMs });
    await child.call("acquire", { ...lock, name: "strict" }, { fairness: "strict" });
    child.tell("leave");
    const exit = await within(PATIENCE_MS, "the process ends by itself", child.exited);
    assert.deepEqual(exit, { code: 0, signal: null, output: "" });
  },
};
