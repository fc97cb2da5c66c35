import { bestOf, type Question } from "../contest.js";
import { measured } from "../costs.js";
import { atLeast } from "../goals.js";
import { foreignPairs } from "../languages/contestants.js";
import { pairsAtOnce } from "../turns.js";
import { candidatesFor } from "./candidates.js";
import { BenchRedis, connected } from "./server.js";

const redis = new BenchRedis();
const TASKS = 1_000;

const countOf = (isQuick: boolean): number => (isQuick ? 3 : 10);

export const manyNames: Question = {
  store: "redis",
  name: "many-names",
  title: "1,000 concurrent tasks on distinct names",
  about: "Many tasks, a name each: what batching gives.",
  unit: "pairs/s",
  better: "higher",
  reason:
    "In a batch a pair costs the server about half of what the raw commands do, and the client " +
    "no longer pays for commands. The rest of the time goes into the objects of a lease (claim, " +
    "acquisition, grant, hold, lease, promises), which are made and collected a thousand at a " +
    "time.",
  rounds: 15,
  async contestants(isQuick) {
    const pairsPerTask = countOf(isQuick);
    const port = await redis.start();
    return Promise.all(
      candidatesFor(isQuick).map((candidate) =>
        connected(candidate, port, async (locker) => {
          const pairs = TASKS * pairsPerTask;
          const { elapsedMs, more } = await measured(
            redis.countedWith(candidate.plain),
            pairs,
            () => pairsAtOnce(locker, candidate.name, TASKS, pairsPerTask),
          );
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
      pairs: countOf(isQuick),
      figureOf: (elapsedMs, pairs) => (pairs * 1000) / elapsedMs,
      servers: (plain) => redis.countedWith(plain),
    });
  },
  goals(of, standings) {
    const ours = of("holdfast");
    const foreign = standings.find(({ name }) => name === "rueidislock (Go)");
    return [
      atLeast(2, "the raw pair's rate", ours, of("raw SET NX PX + script")),
      atLeast(2.5, "the best peer's rate", ours, bestOf("peer", "higher", standings)),
      ...(foreign ? [atLeast(1, "rueidislock's rate", ours, foreign)] : []),
    ];
  },
  close: () => redis.stop(),
};
