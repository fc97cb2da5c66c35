import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";
import { PATIENCE_MS, within } from "../patience.js";

export const graceRelease: Behaviour = {
  title: "a lease that is released as soon as its signal aborts disturbs no other",
  async run(context) {
    const locks = await context.open({ ttlMs: context.ttl.renewedMs });
    const { shortMs, renewedMs } = context.ttl;
    const kept = await Promise.all(["a", "b", "c"].map((name) => locks.mutex(name).acquire()));
    const options = { ttlMs: shortMs, graceMs: shortMs * 0.4, renew: false };
    const lease = await locks.mutex("m").acquire(options);
    const { signal } = lease;
    const released = new Promise<boolean>((resume) => {
      signal.addEventListener("abort", () => resume(lease.release()));
    });
    assert.equal(await within(PATIENCE_MS, "it is released", released), true);
    assert.equal(lease.state, "released");
    await sleep(renewedMs * 1.2);
    for (const other of kept) other.assertHeld();
    assert.equal(locks.held().length, 3);
  },
};
