import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { LeaseLostError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS } from "../patience.js";

export const blockedEventLoop: Behaviour = {
  title: "after a block past the ttl, the very next statement knows that the lease is lost",
  alone: true,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const { shortMs } = context.ttl;
    const [asserted, stated, measured, signalled] = await Promise.all(
      ["asserted", "stated", "measured", "signalled"].map((name) =>
        a.mutex(name).acquire({ ttlMs: shortMs }),
      ),
    );
    assert.ok(asserted && stated && measured && signalled);
    block(shortMs + 50);
    assert.throws(() => asserted.assertHeld(), LeaseLostError);
    assert.equal(stated.state, "lost");
    assert.equal(measured.remainingMs(), 0);
    assert.equal(signalled.signal.aborted, true);

    // The renewal that was due during the block must not bring it back.
    await sleep(shortMs / 2);
    assert.throws(() => asserted.assertHeld(), LeaseLostError);
    assert.equal(await asserted.release(), false);
    await context.untilFree(b, "asserted", shortMs + PROMPT_MS);
  },
};

function block(durationMs: number): void {
  const endMs = performance.now() + durationMs;
  while (performance.now() < endMs);
}
