import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

export const leastTtl: Behaviour = {
  title: "a ttl below what the store can keep is refused",
  async run(context) {
    const locks = await context.open();
    const ttlMs = context.traits.minTtlMs - 1;
    const invalid = { code: "HF_INVALID_OPTION", option: "ttlMs" };
    await assert.rejects(locks.mutex("m").acquire({ ttlMs }), invalid);
    assert.throws(() => locks.mutex("m", { ttlMs }), invalid);
    const lease = await locks.mutex("m").acquire();
    await assert.rejects(lease.renew(ttlMs), invalid);
    await assert.rejects(lease.renew(Number.NaN), invalid);
    lease.assertHeld();
    assert.equal(await lease.release(), true);
  },
};
