import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

export const tokens: Behaviour = {
  title: "tokens strictly rise with every grant, whoever asks and for whatever kind of lock",
  async run(context) {
    const clients = await Promise.all([1, 2, 3].map(() => context.open()));
    const hasShared = context.traits.modes.includes("shared");
    let last = 0n;
    for (let round = 0; round < 5; round += 1) {
      for (const locks of clients) {
        const { read, write } = hasShared
          ? locks.readWrite("m")
          : { read: locks.mutex("m"), write: locks.mutex("m") };
        const kinds = [locks.mutex("m"), read, write];
        for (const lock of hasShared ? [...kinds, locks.semaphore("m", 2)] : kinds) {
          const lease = await lock.acquire();
          assert.ok(lease.token > last, `${lease.token} comes after ${last}`);
          last = lease.token;
          await lease.release();
        }
      }
    }
  },
};
