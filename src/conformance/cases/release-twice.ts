import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

export const releaseTwice: Behaviour = {
  title: "a second release never touches the holder that came between",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const first = await a.mutex("m").acquire();
    assert.equal(await first.release(), true);
    const second = await b.mutex("m").acquire();
    await first.release();
    await first[Symbol.asyncDispose]();
    assert.equal(await a.mutex("m").tryAcquire(), null);
    second.assertHeld();
    assert.equal(await second.release(), true);
  },
};
