import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needShared } from "../needs.js";

export const oneName: Behaviour = {
  title: "mutex, read-write lock and semaphore of one name are views of one lock",
  needs: needShared,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const mutex = await a.mutex("m").acquire();
    assert.equal(await b.readWrite("m").read.tryAcquire(), null);
    assert.equal(await b.readWrite("m").write.tryAcquire(), null);
    assert.equal(await b.semaphore("m", 5).tryAcquire(), null);
    await mutex.release();

    const read = await a.readWrite("m").read.acquire();
    assert.equal(await b.mutex("m").tryAcquire(), null);
    const permit = await b.semaphore("m", 2).tryAcquire();
    assert.ok(permit, "a reader takes one permit");
    assert.equal(await b.semaphore("m", 2).tryAcquire(), null);
    await permit.release();
    await read.release();
    await context.untilFree(b, "m");
  },
};
