import type { Question } from "../contest.js";
import { measured } from "../costs.js";
import { atLeast } from "../goals.js";
import { pairsAtOnce } from "../turns.js";
import { candidates, PEER } from "./candidates.js";
import { BenchEtcd, connected } from "./server.js";

const etcd = new BenchEtcd();
const TASKS = 100;

export const manyNames: Question = {
  store: "etcd",
  name: "many-names",
  title: "100 concurrent tasks on distinct names",
  about: "Many tasks, a name each: what one session for all, and batching, give.",
  unit: "pairs/s",
  better: "higher",
  rounds: 15,
  async contestants(isQuick) {
    const pairsPerTask = isQuick ? 3 : 10;
    const url = await etcd.start();
    return Promise.all(
      candidates.map((candidate) =>
        connected(candidate, url, async (locker) => {
          const pairs = TASKS * pairsPerTask;
          const { elapsedMs, more } = await measured(etcd, pairs, () =>
            pairsAtOnce(locker, candidate.name, TASKS, pairsPerTask),
          );
          return { value: (pairs * 1000) / elapsedMs, more };
        }),
      ),
    );
  },
  goals: (of) => [atLeast(3, "the rate of etcd3's lock", of("holdfast"), of(PEER))],
  close: () => etcd.stop(),
};
