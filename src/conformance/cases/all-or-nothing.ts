import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, within } from "../patience.js";

export const allOrNothing: Behaviour = {
  title: "several locks at once: nothing is kept when one is not available",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const all = b.all([b.mutex("z"), b.mutex("x"), b.mutex("y")]);
    const taken = await a.mutex("y").acquire();
    assert.equal(await all.tryAcquire(), null);
    await assert.rejects(all.acquire({ waitMs: 100 }), { code: "HF_ACQUIRE_TIMEOUT" });
    const controller = new AbortController();
    const aborted = all.acquire({ signal: controller.signal });
    await context.untilWaiting(a, "y", 1);
    controller.abort(new Error("gave up"));
    await assert.rejects(aborted, { message: "gave up" });
    assert.deepEqual(b.held(), []);
    for (const name of ["x", "z"]) await context.untilFree(a, name, PROMPT_MS);

    await taken.release();
    const set = await within(PROMPT_MS, "all are free", all.acquire());
    for (const name of ["x", "y", "z"]) {
      assert.equal(await a.mutex(name).tryAcquire(), null);
      const [holder] = (await a.inspect(name)).holders;
      if (holder) assert.equal(holder.token, set.tokenOf(name));
    }
    assert.equal(await set.release(), true);
    for (const name of ["x", "y", "z"]) await context.untilFree(a, name, PROMPT_MS);
  },
};
