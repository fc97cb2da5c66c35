import assert from "node:assert/strict";
import { AcquireTimeoutError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS } from "../patience.js";

const WAIT_MS = 1_000;

export const timeOut: Behaviour = {
  title: "an acquire times out in its time, names the holder and leaves the queue",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const held = await a.mutex("m").acquire({ meta: { job: "held by a" } });
    // Who just came may have to wait for the first answer of the store.
    await b.inspect("m");
    for (const fairness of ["bounded", "strict"] as const) {
      const startMs = performance.now();
      const waiting = b.mutex("m").acquire({ waitMs: WAIT_MS, fairness });
      const error = await waiting.then(
        () => assert.fail("granted twice"),
        (reason) => reason,
      );
      const tookMs = performance.now() - startMs;
      assert.ok(error instanceof AcquireTimeoutError, String(error));
      assert.ok(tookMs >= WAIT_MS - 2, `waited only ${tookMs} ms`);
      assert.ok(tookMs <= WAIT_MS + PROMPT_MS, `waited ${tookMs} ms`);
      assert.equal(error.lockName, "m");
      assert.equal(error.waitMs, WAIT_MS);
      // A store that can show a holder knows who was in the way.
      const [holder] = (await b.inspect("m")).holders;
      if (holder) assert.equal(error.holder?.meta.job, "held by a");
      if (holder) assert.equal(error.holder?.token, held.token);
    }
    assert.deepEqual((await a.inspect("m")).waiters, [], "nobody waits any more");
    await held.release();
    await context.untilFree(b, "m", PROMPT_MS);
  },
};
