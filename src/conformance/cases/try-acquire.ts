import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

export const tryAcquire: Behaviour = {
  title: "a try takes what is free and never waits for what is not",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const lease = await a.mutex("m").tryAcquire();
    assert.ok(lease, "a free lock is granted");
    assert.equal(lease.state, "held");
    assert.ok(lease.remainingMs() > context.ttl.longMs / 2);
    lease.assertHeld();

    assert.equal(await b.mutex("m").tryAcquire(), null, "another client is refused");
    assert.equal(await a.mutex("m").tryAcquire(), null, "so is the same client");
    const strict = { fairness: "strict" } as const;
    assert.equal(await a.mutex("m").tryAcquire(strict), null, "also when it takes no turns");
    await assert.rejects(b.mutex("m").acquire({ waitMs: 0 }), { code: "HF_ACQUIRE_TIMEOUT" });

    assert.equal(await lease.release(), true);
    assert.equal(lease.state, "released");
    assert.throws(() => lease.assertHeld(), { code: "HF_LEASE_LOST" });
    const next = await b.mutex("m").tryAcquire();
    assert.ok(next, "what was released is free at once");
    assert.equal(await next.release(), true);
  },
};
