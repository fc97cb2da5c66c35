import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, within } from "../patience.js";

export const close: Behaviour = {
  title: "close releases everything that is held and ends every wait",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const hasShared = context.traits.modes.includes("shared");
    const leases = [
      await a.mutex("turns").acquire(),
      await a.mutex("strict").acquire({ fairness: "strict" }),
      await a.mutex("fixed").acquire({ renew: false }),
      await a.election("seat").campaign(),
    ];
    if (hasShared) leases.push(await a.readWrite("shared").read.acquire());
    const blocked = await b.mutex("blocked").acquire();
    const waiting = [
      a.mutex("blocked").acquire(),
      a.mutex("blocked").acquire({ fairness: "strict" }),
      a.mutex("turns").acquire(),
      a.mutex("turns").run(() => assert.fail("ran after close")),
      a.election("seat").campaign({ fairness: "strict" }),
    ];
    const ends = waiting.map((wait) =>
      wait.then(
        () => "granted",
        (error) => error.code,
      ),
    );
    assert.equal(a.held().length, leases.length);

    await within(PROMPT_MS + 5_000, "close ends", a.close());
    assert.deepEqual(
      await Promise.all(ends),
      ends.map(() => "HF_CLOSED"),
    );
    assert.deepEqual(a.held(), []);
    for (const lease of leases) assert.notEqual(lease.state, "held");
    for (const name of ["turns", "strict", "fixed"]) await context.untilFree(b, name, PROMPT_MS);
    const elected = b.election("seat").campaign();
    await within(PROMPT_MS, "the seat is free", elected);
    if (hasShared) await context.untilFree(b, "shared", PROMPT_MS);
    assert.deepEqual((await b.inspect("blocked")).waiters, []);
    blocked.assertHeld();
  },
};
