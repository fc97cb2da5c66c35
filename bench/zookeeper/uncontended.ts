import type { Question } from "../contest.js";
import { measured } from "../costs.js";
import { atMost } from "../goals.js";
import { foreignPairs } from "../languages/contestants.js";
import { pairsOf } from "../turns.js";
import { candidates, RAW } from "./candidates.js";
import { BenchZookeeper, connected } from "./server.js";

const zookeeper = new BenchZookeeper();

const countOf = (isQuick: boolean): number => (isQuick ? 300 : 500);

export const uncontended: Question = {
  store: "zookeeper",
  name: "uncontended",
  title: "acquire and release, one at a time, nobody in the way",
  about: "One task, one name: what a lock costs when nobody is in the way.",
  unit: "µs/pair",
  better: "lower",
  reason:
    "The server takes as long as for the raw requests. The rest is processor time of the " +
    "process, which is about twice that of the raw requests.",
  rounds: 21,
  async contestants(isQuick) {
    const pairs = countOf(isQuick);
    const port = await zookeeper.start();
    return Promise.all(
      candidates.map((candidate) =>
        connected(candidate, port, async (locker) => {
          const run = (): Promise<void> => pairsOf(locker, candidate.name, pairs);
          const { elapsedMs, more } = await measured(zookeeper, pairs, run);
          return { value: (elapsedMs * 1000) / pairs, more };
        }),
      ),
    );
  },
  foreign(isQuick) {
    return foreignPairs({
      store: "zookeeper",
      address: zookeeper.address,
      tasks: 1,
      pairs: countOf(isQuick),
      figureOf: (elapsedMs, pairs) => (elapsedMs * 1000) / pairs,
      servers: () => zookeeper,
    });
  },
  goals: (of) => [atMost(1.08, "the raw pair's time", of("holdfast"), of(RAW))],
  close: () => zookeeper.stop(),
};
