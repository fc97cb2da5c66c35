import { bestOf, type Question } from "../contest.js";
import { foreignPairs } from "../languages/contestants.js";
import { candidatesFor } from "./candidates.js";
import { BenchRedis, connected, measured } from "./server.js";

const redis = new BenchRedis();
const TASKS = 1_000;

const pairsOf = (isQuick: boolean): number => (isQuick ? 3 : 10);

export const manyNames: Question = {
  store: "redis",
  name: "many-names",
  title: "1,000 concurrent tasks on distinct names",
  about: "Many tasks, a name each: what batching gives.",
  unit: "pairs/s",
  better: "higher",
  reason:
    "In a batch a pair costs the server about half of what the raw commands do, and the client " +
    "no longer pays for commands. What is left is the making and collecting of what a lease " +
    "consists of (claim, acquisition, grant, hold, lease, promises), a thousand at a time.",
  rounds: 15,
  async contestants(isQuick) {
    const pairsPerTask = pairsOf(isQuick);
    const port = await redis.start();
    return Promise.all(
      candidatesFor(isQuick).map((candidate) =>
        connected(candidate, port, async (locker) => {
          const task = async (_: unknown, index: number): Promise<void> => {
            for (let pair = 0; pair < pairsPerTask; pair += 1) {
              const release = await locker.acquire(`${candidate.name}:${index}`);
              await release();
            }
          };
          const pairs = TASKS * pairsPerTask;
          const { elapsedMs, more } = await measured(redis, candidate, pairs, async () => {
            await Promise.all(Array.from({ length: TASKS }, task));
          });
          return { value: (pairs * 1000) / elapsedMs, more };
        }),
      ),
    );
  },
  foreign(isQuick) {
    return foreignPairs({
      store: "redis",
      address: redis.address,
      tasks: TASKS,
      pairs: pairsOf(isQuick),
      figureOf: (elapsedMs, pairs) => (pairs * 1000) / elapsedMs,
      serverCosts: (pairs, work) => redis.serverCosts(pairs, work),
    });
  },
  goals(of, standings) {
    const ours = of("holdfast").median;
    const raw = of("raw SET NX PX + script").median;
    const peer = bestOf("peer", "higher", standings).median;
    const toRaw = ours / raw;
    const toPeer = ours / peer;
    return [
      {
        text: "at least 2 × the raw pair's rate",
        value: toRaw,
        isMet: toRaw >= 2,
        line: 2 * raw,
      },
      {
        text: "at least 2.5 × the best peer's rate",
        value: toPeer,
        isMet: toPeer >= 2.5,
        line: 2.5 * peer,
      },
    ];
  },
  close: () => redis.stop(),
};
