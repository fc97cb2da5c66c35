import type { Question } from "../contest.js";
import { candidates, PEER } from "./candidates.js";
import { BenchEtcd, connected, measured } from "./server.js";

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
          const task = async (_: unknown, index: number): Promise<void> => {
            for (let pair = 0; pair < pairsPerTask; pair += 1) {
              const release = await locker.acquire(`${candidate.name}:${index}`);
              await release();
            }
          };
          const pairs = TASKS * pairsPerTask;
          const { elapsedMs, more } = await measured(etcd, pairs, async () => {
            await Promise.all(Array.from({ length: TASKS }, task));
          });
          return { value: (pairs * 1000) / elapsedMs, more };
        }),
      ),
    );
  },
  goals(of) {
    const peer = of(PEER).median;
    const value = of("holdfast").median / peer;
    const text = "at least 3 × the rate of etcd3's lock";
    return [{ text, value, isMet: value >= 3, line: 3 * peer }];
  },
  close: () => etcd.stop(),
};
