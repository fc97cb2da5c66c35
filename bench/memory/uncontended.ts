import { Mutex } from "async-mutex";
import { Holdfast, type Lock } from "holdfast";
import { memoryStore } from "holdfast/memory";
import type { Contestant, Question } from "../contest.js";

export const uncontended: Question = {
  store: "memory",
  name: "uncontended",
  title: "acquire and release, one at a time",
  about: "One task, one name: acquire and release, again and again.",
  unit: "pairs/s",
  better: "higher",
  rounds: 15,
  async contestants(isQuick) {
    const pairs = isQuick ? 20_000 : 100_000;
    const mutex = new Mutex();
    return [
      contestant("holdfast", { fairness: "bounded" }, pairs),
      contestant("holdfast strict", { fairness: "strict" }, pairs),
      {
        name: "async-mutex",
        role: "peer",
        round: async () => {
          const startMs = performance.now();
          for (let pair = 0; pair < pairs; pair += 1) {
            const release = await mutex.acquire();
            release();
          }
          return { value: (pairs * 1000) / (performance.now() - startMs) };
        },
      },
    ];
  },
  goals(of) {
    const peer = of("async-mutex").median;
    const value = of("holdfast").median / peer;
    const text = "at least 0.4 of async-mutex's rate";
    return [{ text, value, isMet: value >= 0.4, line: 0.4 * peer }];
  },
};

function contestant(
  name: string,
  options: { fairness: "bounded" | "strict" },
  pairs: number,
): Contestant {
  const locks = new Holdfast(memoryStore());
  const lock: Lock = locks.mutex("a", options);
  return {
    name,
    role: "holdfast",
    round: async () => {
      const startMs = performance.now();
      for (let pair = 0; pair < pairs; pair += 1) {
        const lease = await lock.acquire();
        await lease.release();
      }
      return { value: (pairs * 1000) / (performance.now() - startMs) };
    },
    close: () => locks.close(),
  };
}
