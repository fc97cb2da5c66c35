import { createRequire } from "node:module";
import type * as asyncMutex from "async-mutex";
import { Holdfast, type Lock } from "holdfast";
import { memoryStore } from "holdfast/memory";
import type { Contestant, Question, Sample } from "../contest.js";
import { measured } from "../costs.js";
import { atLeast } from "../goals.js";

/** The CommonJS build of async-mutex is two to three times as fast as the one for `import`. */
const { Mutex }: typeof asyncMutex = createRequire(import.meta.url)("async-mutex");

export const uncontended: Question = {
  store: "memory",
  name: "uncontended",
  title: "acquire and release, one at a time",
  about: "One task, one name: acquire and release, again and again.",
  unit: "pairs/s",
  better: "higher",
  reason:
    "A pair of async-mutex is a queue and a promise. A pair here makes a claim, a grant, a hold " +
    "and a lease: they give it a token, a deadline and an end when its process stops. The clock " +
    "alone, which judges each of them, takes as long as such a queue and promise.",
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
          return await rateOf(pairs, async () => {
            for (let pair = 0; pair < pairs; pair += 1) {
              const release = await mutex.acquire();
              release();
            }
          });
        },
      },
    ];
  },
  goals: (of) => [atLeast(0.6, "async-mutex's rate", of("holdfast"), of("async-mutex"))],
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
    round: () =>
      rateOf(pairs, async () => {
        for (let pair = 0; pair < pairs; pair += 1) {
          const lease = await lock.acquire();
          await lease.release();
        }
      }),
    close: () => locks.close(),
  };
}

async function rateOf(pairs: number, run: () => Promise<void>): Promise<Sample> {
  const { elapsedMs, more } = await measured(null, pairs, run);
  return { value: (pairs * 1000) / elapsedMs, more };
}
