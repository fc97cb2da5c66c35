import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needTransfer } from "../needs.js";
import { until } from "../patience.js";

export const transfer: Behaviour = {
  title: "a detached lease outlives its client and goes on in another, with the same token",
  needs: needTransfer,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const ttlMs = 3 * context.ttl.renewedMs;
    const lease = await a.mutex("m").acquire({ transferable: true, ttlMs });
    const plain = await a.mutex("plain").acquire();
    assert.equal(plain.handle, null);
    assert.throws(() => plain.detach(), { code: "HF_UNSUPPORTED" });
    const handle = lease.detach();
    await a.close();
    assert.equal(await b.mutex("m").tryAcquire(), null, "close leaves it alone");

    const resumed = await b.resume(handle);
    assert.ok(resumed);
    assert.equal(resumed.token, lease.token);
    assert.equal(resumed.name, "m");
    const firstMs = performance.now() + resumed.remainingMs();
    await until("the first deadline is past", () => performance.now() > firstMs);
    resumed.assertHeld();
    assert.equal(await resumed.release(), true);
    assert.equal(await b.resume(handle), null, "a handle is good for as long as the lease");
    for (const malformed of ["", "hf1.", "hf1.e30", "nonsense", undefined, 7] as string[]) {
      await assert.rejects(b.resume(malformed), { code: "HF_INVALID_OPTION", option: "handle" });
    }
  },
};
