import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

const reason = new Error("aborted by the test");
const isReason = (error: unknown): boolean => error === reason;

export const abortBefore: Behaviour = {
  title: "an acquire with an aborted signal asks for nothing",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const signal = AbortSignal.abort(reason);
    await assert.rejects(a.mutex("m").acquire({ signal }), isReason);
    await assert.rejects(
      a.mutex("m").run(() => assert.fail("ran"), { signal }),
      isReason,
    );
    assert.deepEqual(a.held(), []);
    const lease = await b.mutex("m").tryAcquire();
    assert.ok(lease, "nothing was taken");
  },
};
