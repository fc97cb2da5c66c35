import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, until } from "../patience.js";

export const allLost: Behaviour = {
  title: "several locks at once: when one is lost, the whole is lost",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const set = await a.all([a.mutex("x"), a.mutex("y")]).acquire();
    assert.equal(set.state, "held");
    const token = set.tokenOf("y");
    assert.equal(await b.revoke("y", { token, reason: "test" }), true);
    await until("the loss is told", () => set.signal.aborted, PROMPT_MS);
    assert.equal(set.state, "lost");
    assert.equal(set.remainingMs(), 0);
    assert.throws(() => set.assertHeld(), { code: "HF_LEASE_LOST" });
    assert.equal(await set.release(), false);
    for (const name of ["x", "y"]) await context.untilFree(b, name, PROMPT_MS);
  },
};
