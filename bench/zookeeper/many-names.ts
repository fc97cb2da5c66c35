import type { Question } from "../contest.js";
import { measured } from "../costs.js";
import { atLeast } from "../goals.js";
import { foreignPairs } from "../languages/contestants.js";
import { pairsAtOnce, pairsOf } from "../turns.js";
import { candidates, RAW } from "./candidates.js";
import { BenchZookeeper, connected } from "./server.js";

const zookeeper = new BenchZookeeper();
const TASKS = 100;

const countOf = (isQuick: boolean): number => (isQuick ? 3 : 10);

export const manyNames: Question = {
  store: "zookeeper",
  name: "many-names",
  title: "100 concurrent tasks on distinct names, beside raw pairs one at a time",
  about: "Many tasks, a name each: what one session for all, and joined writes, give.",
  unit: "pairs/s",
  better: "higher",
  rounds: 15,
  async contestants(isQuick) {
    const pairsPerTask = countOf(isQuick);
    const pairs = TASKS * pairsPerTask;
    const port = await zookeeper.start();
    return Promise.all(
      candidates.map((candidate) =>
        connected(candidate, port, async (locker) => {
          const { elapsedMs, more } = await measured(zookeeper, pairs, () =>
            candidate.role === "floor"
              ? pairsOf(locker, candidate.name, pairs)
              : pairsAtOnce(locker, candidate.name, TASKS, pairsPerTask),
          );
          return { value: (pairs * 1000) / elapsedMs, more };
        }),
      ),
    );
  },
  foreign(isQuick) {
    return foreignPairs({
      store: "zookeeper",
      address: zookeeper.address,
      tasks: TASKS,
      pairs: countOf(isQuick),
      figureOf: (elapsedMs, pairs) => (pairs * 1000) / elapsedMs,
      servers: () => zookeeper,
    });
  },
  goals: (of) => [atLeast(4, "the rate of raw pairs in sequence", of("holdfast"), of(RAW))],
  close: () => zookeeper.stop(),
};
