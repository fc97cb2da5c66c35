import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";
import { needLeftovers } from "../needs.js";

/** Long enough for every answer to arrive: what nobody answered may leave a trace for a while. */
const MOMENT_MS = 20;

export const nothingLeft: Behaviour = {
  title: "what was released leaves nothing behind in the store",
  needs: needLeftovers,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const hasShared = context.traits.modes.includes("shared");
    const use = async (index: number): Promise<void> => {
      const locks = index % 2 === 0 ? a : b;
      const name = `m${index % 5}`;
      const lock = index % 3 === 0 && hasShared ? locks.readWrite(name).read : locks.mutex(name);
      if (index % 4 === 0) await (await lock.tryAcquire())?.release();
      else await lock.run(() => sleep(MOMENT_MS));
    };
    await Promise.all(Array.from({ length: 40 }, (_, index) => use(index)));
    await a.election("seat").lead(() => sleep(MOMENT_MS));

    const held = await a.mutex("held").acquire({ fairness: "strict" });
    await assert.rejects(b.mutex("held").acquire({ waitMs: 500 }), { code: "HF_ACQUIRE_TIMEOUT" });
    // In one message: the store may hand over before it says that there is somebody in line.
    const waiting = a.mutex("held").acquire({ fairness: "strict" });
    await held.release();
    const next = await waiting;
    await sleep(MOMENT_MS);
    await next.release();

    await a.mutex("closed").acquire();
    assert.equal(a.held().length, 1);
    await Promise.all([a.close(), b.close()]);
    assert.deepEqual(await context.leftovers(), []);
  },
};
