import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";
import { PATIENCE_MS, within } from "../patience.js";

export const allInOppositeOrders: Behaviour = {
  title: "several locks at once: opposite orders do not deadlock",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const names = ["x", "y", "z"];
    let inside = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      assert.equal(inside, 1, "all of them are held by one alone");
      await sleep(1);
      inside -= 1;
    };
    const rounds = Array.from({ length: 15 }, (_, round) => {
      const turned = round % 2 === 0 ? names : [...names].reverse();
      const [mine, theirs] = [turned, [...turned].reverse()];
      return [
        a.all(mine.map((name) => a.mutex(name))).run(work),
        b.all(theirs.map((name) => b.mutex(name))).run(work),
      ];
    });
    await within(PATIENCE_MS, "nobody waits for ever", Promise.all(rounds.flat()));
  },
};
