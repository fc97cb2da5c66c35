import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needAll, needProcesses, needTransfer } from "../needs.js";
import { PROMPT_MS } from "../patience.js";

export const transferOfProcess: Behaviour = {
  title: "a lease that one process detached goes on in another",
  needs: needAll(needTransfer, needProcesses),
  async run(context) {
    const locks = await context.open();
    const [giver, taker] = await context.children(2);
    assert.ok(giver && taker);
    const { longMs } = context.ttl;
    const options = { transferable: true, ttlMs: longMs };
    const token = await giver.call("acquire", { kind: "mutex", name: "m" }, options);
    const handle = await giver.call("detach", token);
    await giver.call("close");
    await giver.kill();
    assert.equal(await locks.mutex("m").tryAcquire(), null, "it is held by nobody alive");
    assert.equal(await taker.call("resume", handle), token);
    assert.equal((await taker.call("report", token)).state, "held");
    assert.equal(await taker.call("release", token), true);
    await context.untilFree(locks, "m", PROMPT_MS);
  },
};
