import type { Question } from "../contest.js";
import { candidates, PEER } from "./candidates.js";
import { BenchEtcd, connected } from "./server.js";

const etcd = new BenchEtcd();
const TASKS = 100;

/** Many tasks, a name each: what one session for all, and batching, give. */
export const manyNames: Question = {
  store: "etcd",
  name: "many-names",
  title: "100 concurrent tasks on distinct names",
  unit: "pairs/s",
  better: "higher",
  rounds: 15,
  async contestants(isQuick) {
    const pairsPerTask = isQuick ? 3 : 10;
    const url = await etcd.start();
    return Promise.all(
      candidates.map((candidate) =>
        connected(candidate, url, async (locker) => {
          const startMs = performance.now();
          const task = async (_: unknown, index: number): Promise<void> => {
            for (let pair = 0; pair < pairsPerTask; pair += 1) {
              const release = await locker.acquire(`${candidate.name}:${index}`);
              await release();
            }
          };
          await Promise.all(Array.from({ length: TASKS }, task));
          return { value: (TASKS * pairsPerTask * 1000) / (performance.now() - startMs) };
        }),
      ),
    );
  },
  goals(of) {
    const value = of("holdfast").median / of(PEER).median;
    return [{ text: "at least 3 × the rate of etcd3's lock", value, isMet: value >= 3 }];
  },
  close: () => etcd.stop(),
};
