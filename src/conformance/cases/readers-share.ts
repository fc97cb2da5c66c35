import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needShared } from "../needs.js";
import { isSettled, PROMPT_MS, within } from "../patience.js";

export const readersShare: Behaviour = {
  title: "readers share, a writer is alone",
  needs: needShared,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const readers = [
      await a.readWrite("m").read.acquire(),
      await b.readWrite("m").read.acquire(),
      await a.readWrite("m").read.tryAcquire(),
    ];
    assert.equal(new Set(readers.map((lease) => lease?.token)).size, 3, "each has its own token");
    assert.equal(await b.readWrite("m").write.tryAcquire(), null, "readers keep writers out");
    const writing = b.readWrite("m").write.acquire();
    await context.untilWaiting(a, "m", 1);
    for (const lease of readers) {
      assert.equal(await isSettled(writing), false, "a writer waits for the last reader");
      assert.equal(await lease?.release(), true);
    }
    const writer = await within(PROMPT_MS, "the writer is served", writing);
    assert.equal(await a.readWrite("m").read.tryAcquire(), null, "a writer keeps readers out");
    assert.equal(await a.readWrite("m").write.tryAcquire(), null);
    await writer.release();
  },
};
