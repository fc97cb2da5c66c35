import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needShared } from "../needs.js";

export const semaphoreLimits: Behaviour = {
  title: "where limits differ, the least of all counts",
  needs: needShared,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const wide = await a.semaphore("s", 3).acquire();
    const narrow = await b.semaphore("s", 2).acquire();
    assert.equal(await a.semaphore("s", 3).tryAcquire(), null, "a holder of limit 2 is there");
    await narrow.release();
    const second = await a.semaphore("s", 3).acquire();
    assert.equal(await b.semaphore("s", 2).tryAcquire(), null, "two are there already");
    const third = await a.semaphore("s", 3).tryAcquire();
    assert.ok(third);
    await Promise.all([wide, second, third].map((lease) => lease.release()));
  },
};
