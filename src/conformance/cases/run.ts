import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

export const run: Behaviour = {
  title: "run passes on what its body returns or throws, and frees the lock either way",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const value = await a.mutex("m").run(async (lease) => {
      lease.assertHeld();
      assert.equal(await b.mutex("m").tryAcquire(), null);
      return 7;
    });
    assert.equal(value, 7);

    const failure = new Error("the body failed");
    const failing = a.mutex("m").run(() => Promise.reject(failure));
    await assert.rejects(failing, (error) => error === failure);
    await context.untilFree(b, "m");
  },
};
