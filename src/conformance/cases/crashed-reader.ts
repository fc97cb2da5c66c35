import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needAll, needProcesses, needShared } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

export const crashedReader: Behaviour = {
  title: "a reader that is killed does not keep writers out for ever",
  needs: needAll(needShared, needProcesses),
  async run(context) {
    const [locks, child] = [await context.open(), await context.child()];
    const { renewedMs } = context.ttl;
    await child.call("acquire", { kind: "read", name: "m" }, { ttlMs: renewedMs });
    const other = await locks.readWrite("m").read.acquire();
    const writing = locks.readWrite("m").write.acquire();
    await child.kill();
    assert.equal(await other.release(), true);
    await within(2 * renewedMs + PROMPT_MS, "the writer is served", writing);
  },
};
