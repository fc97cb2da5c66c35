import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFifo } from "../needs.js";
import { PATIENCE_MS, within } from "../patience.js";

const strict = { fairness: "strict" } as const;

export const fifo: Behaviour = {
  title: "waiters are served in the order in which they came, whichever client they came from",
  needs: needFifo,
  async run(context) {
    const clients = await Promise.all([1, 2, 3].map(() => context.openKnown(strict)));
    const [first] = clients;
    assert.ok(first);
    const held = await first.mutex("m").acquire();
    const served: number[] = [];
    const waiting: Promise<unknown>[] = [];
    for (let index = 0; index < 9; index += 1) {
      const client = clients[index % 3];
      assert.ok(client);
      const turn = client.mutex("m").run(() => served.push(index));
      waiting.push(turn);
      await context.untilWaiting(first, "m", index + 1);
    }
    await held.release();
    await within(PATIENCE_MS, "all waiters are served", Promise.all(waiting));
    assert.deepEqual(served, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  },
};
