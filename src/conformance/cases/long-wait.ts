import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";
import { needFifo } from "../needs.js";
import { isSettled, PROMPT_MS, within } from "../patience.js";

const strict = { fairness: "strict" } as const;

export const longWait: Behaviour = {
  title: "a waiter that waits for many of its ttls keeps its place",
  needs: needFifo,
  async run(context) {
    const clients = await Promise.all([1, 2, 3].map(() => context.openKnown(strict)));
    const [a, b, c] = clients;
    assert.ok(a && b && c);
    const { shortMs, longMs } = context.ttl;
    const held = await a.mutex("m").acquire();
    const first = b.mutex("m").acquire({ ttlMs: shortMs });
    await context.untilWaiting(a, "m", 1);
    const second = c.mutex("m").acquire({ ttlMs: longMs });
    await context.untilWaiting(a, "m", 2);
    await sleep(4 * shortMs);
    assert.equal((await a.inspect("m")).waiters.length, 2);
    await held.release();
    const lease = await within(PROMPT_MS, "the first is served first", first);
    assert.equal(await isSettled(second), false);
    await lease.release();
    await within(PROMPT_MS, "the second is served", second);
  },
};
