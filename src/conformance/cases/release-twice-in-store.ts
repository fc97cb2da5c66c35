import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { claimOf } from "../claim.js";
import { PROMPT_MS } from "../patience.js";

export const releaseTwiceInStore: Behaviour = {
  title: "the store itself ignores a repeated release",
  async run(context) {
    const [a, b] = [await context.openStore(), await context.openStore()];
    // Bound, so that they are closed; the case speaks to the stores themselves.
    const observer = context.bind(a);
    context.bind(b);
    const first = await a.acquire(claimOf(a, "m", context.ttl.longMs), null);
    assert.ok(first.type === "granted");
    assert.equal(await a.release(first, PROMPT_MS), true);
    const second = await b.acquire(claimOf(b, "m", context.ttl.longMs), null);
    assert.ok(second.type === "granted");
    assert.equal(await a.release(first, PROMPT_MS), false, "there is nothing to release any more");
    assert.equal(await observer.mutex("m").tryAcquire(), null);
    assert.equal(await b.release(second, PROMPT_MS), true);
  },
};
