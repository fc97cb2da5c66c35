import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors.js";
import { altered } from "../altered.js";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, within } from "../patience.js";

export const lossInTime: Behaviour = {
  title: "a holder that cannot renew knows of its loss before the store grants to another",
  async run(context) {
    const mute = altered(await context.openStore(), {
      renew: () => Promise.reject(new Error("mute")),
    });
    const [a, b] = [context.bind(mute), await context.open()];
    const { shortMs } = context.ttl;
    const lease = await a.mutex("m").acquire({ ttlMs: shortMs });
    const { signal } = lease;
    // A busy machine may see the takeover late, so the deadline counts, too.
    const remainingMs = lease.remainingMs();
    assert.ok(remainingMs <= shortMs, `${remainingMs} ms are left of a ttl of ${shortMs} ms`);
    // On a busy machine the grant may be seen before the timer of the loss; by the clock it is
    // lost, and to ask is enough to have it told.
    const takeover = b
      .mutex("m")
      .acquire()
      .then((next) => ({
        next,
        state: lease.state,
        isTold: signal.aborted,
      }));
    const bound = 2 * shortMs + PROMPT_MS;
    const { next, state, isTold } = await within(bound, "the waiter takes over", takeover);
    assert.equal(state, "lost");
    assert.equal(isTold, true);
    assert.ok(signal.reason instanceof LeaseLostError);
    assert.equal(signal.reason.reason, "expired");
    assert.equal(signal.reason.lockName, "m");
    assert.ok(next.token > lease.token);
  },
};
