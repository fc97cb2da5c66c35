import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

export const closed: Behaviour = {
  title: "whoever asks something of a closed client is told so",
  async run(context) {
    const locks = await context.open();
    const [lock, election] = [locks.mutex("m"), locks.election("e")];
    const lease = await lock.acquire();
    await Promise.all([locks.close(), locks.close(), locks[Symbol.asyncDispose]()]);
    const closedCode = { code: "HF_CLOSED" };
    await assert.rejects(lock.acquire(), closedCode);
    await assert.rejects(lock.tryAcquire(), closedCode);
    await assert.rejects(
      lock.run(() => assert.fail("ran")),
      closedCode,
    );
    await assert.rejects(locks.all([lock]).acquire(), closedCode);
    await assert.rejects(election.campaign(), closedCode);
    await assert.rejects(election.leader(), closedCode);
    await assert.rejects(election.observe().next(), closedCode);
    await assert.rejects(locks.inspect("m"), closedCode);
    await assert.rejects(locks.list().next(), closedCode);
    await assert.rejects(locks.revoke("m", { token: lease.token, reason: "test" }), closedCode);
    if (context.traits.marks) {
      await assert.rejects(
        locks.once("o", () => 1, { keepMs: 1_000 }),
        closedCode,
      );
    }
    if (context.traits.transferable) await assert.rejects(locks.resume("hf1."), closedCode);
    await lease.release();
    await locks.close();
  },
};
