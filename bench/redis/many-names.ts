import { bestOf, type Question } from "../contest.js";
import { candidates } from "./candidates.js";
import { BenchRedis, connected, measured } from "./server.js";

const redis = new BenchRedis();
const TASKS = 1_000;

/** Many tasks, a name each: what batching gives. */
export const manyNames: Question = {
  store: "redis",
  name: "many-names",
  title: "1,000 concurrent tasks on distinct names",
  unit: "pairs/s",
  better: "higher",
  reason:
    "In a batch a pair costs the server less than the raw commands do, but the client " +
    "makes more objects for each lease (claim, acquisition, grant, hold, lease, promises) " +
    "than it saves in commands, and at 1,000 at a time it is bound by collecting them.",
  rounds: 15,
  async contestants(isQuick) {
    const pairsPerTask = isQuick ? 3 : 10;
    const port = await redis.start();
    return Promise.all(
      candidates.map((candidate) =>
        connected(candidate, port, async (locker) => {
          const task = async (_: unknown, index: number): Promise<void> => {
            for (let pair = 0; pair < pairsPerTask; pair += 1) {
              const release = await locker.acquire(`${candidate.name}:${index}`);
              await release();
            }
          };
          const pairs = TASKS * pairsPerTask;
          const { elapsedMs, more } = await measured(redis, pairs, async () => {
            await Promise.all(Array.from({ length: TASKS }, task));
          });
          return { value: (pairs * 1000) / elapsedMs, more };
        }),
      ),
    );
  },
  goals(of, standings) {
    const ours = of("holdfast").median;
    const toRaw = ours / of("raw SET NX PX + script").median;
    const toPeer = ours / bestOf("peer", "higher", standings).median;
    return [
      { text: "at least 2 × the raw pair's rate", value: toRaw, isMet: toRaw >= 2 },
      { text: "at least 2.5 × the best peer's rate", value: toPeer, isMet: toPeer >= 2.5 },
    ];
  },
  close: () => redis.stop(),
};
