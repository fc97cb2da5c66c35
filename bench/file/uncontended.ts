import type { Contestant, Question } from "../contest.js";
import { BenchFolder } from "./bench-folder.js";
import { candidates } from "./candidates.js";

const bench = new BenchFolder();

export const uncontended: Question = {
  store: "file",
  name: "uncontended",
  title: "acquire and release, one at a time, nobody in the way",
  about: "One task, one name: what a lock costs when nobody is in the way.",
  unit: "µs/pair",
  better: "lower",
  reason:
    "Two transactions that write ahead take half of the time, even without a token, an order " +
    "or a deadline; proper-lockfile's pair is a mkdir, a stat and an rmdir of the system.",
  rounds: 21,
  async contestants(isQuick) {
    const pairs = isQuick ? 300 : 1_000;
    const folder = bench.make();
    return candidates.map(({ name, role, open }): Contestant => {
      const locker = open(folder);
      return {
        name,
        role,
        round: async () => {
          const startMs = performance.now();
          for (let pair = 0; pair < pairs; pair += 1) {
            const release = await locker.acquire("pair");
            await release();
          }
          return { value: ((performance.now() - startMs) * 1000) / pairs };
        },
        close: () => locker.close(),
      };
    });
  },
  goals(of) {
    const value = of("proper-lockfile").median / of("holdfast").median;
    return [{ text: "at least 10 × proper-lockfile's rate", value, isMet: value >= 10 }];
  },
  close: () => bench.remove(),
};
