import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { isSettled, PROMPT_MS, within } from "../patience.js";

export const wait: Behaviour = {
  title: "a waiter is granted the lock as soon as it is released, and not before",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const held = await a.mutex("m").acquire();
    const waiting = b.mutex("m").acquire();
    await context.untilWaiting(a, "m", 1);
    assert.equal(await isSettled(waiting, 100), false, "nobody else is granted a held lock");

    assert.equal(await held.release(), true);
    // Leases are long, so only a message of the release can be this quick.
    const next = await within(PROMPT_MS, "the waiter is woken", waiting);
    assert.ok(next.token > held.token);
    assert.ok(next.remainingMs() > 0);
    assert.equal(await next.release(), true);
  },
};
