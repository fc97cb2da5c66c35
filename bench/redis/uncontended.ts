import type { Question } from "../contest.js";
import { foreignPairs } from "../languages/contestants.js";
import { candidatesFor } from "./candidates.js";
import { BenchRedis, connected, measured } from "./server.js";

const redis = new BenchRedis();

const pairsOf = (isQuick: boolean): number => (isQuick ? 300 : 1_000);

export const uncontended: Question = {
  store: "redis",
  name: "uncontended",
  title: "acquire and release, one at a time, nobody in the way",
  about: "One task, one name: what a lock costs when nobody is in the way.",
  unit: "µs/pair",
  better: "lower",
  reason:
    "The floor is one plain command and one script; a grant with a token, a place in the " +
    "list of locks and a time of the server needs two scripts (TIME, then a read and a " +
    "write of the register). The rest is the client's: options, lease, keeper, batch and " +
    "codec, which cost most when the process sleeps between two answers and its code is " +
    "cold.",
  rounds: 21,
  async contestants(isQuick) {
    const pairs = pairsOf(isQuick);
    const port = await redis.start();
    return Promise.all(
      candidatesFor(isQuick).map((candidate) =>
        connected(candidate, port, async (locker) => {
          const { elapsedMs, more } = await measured(redis, candidate, pairs, async () => {
            for (let pair = 0; pair < pairs; pair += 1) {
              const release = await locker.acquire(candidate.name);
              await release();
            }
          });
          return { value: (elapsedMs * 1000) / pairs, more };
        }),
      ),
    );
  },
  foreign(isQuick) {
    return foreignPairs({
      store: "redis",
      address: redis.address,
      tasks: 1,
      pairs: pairsOf(isQuick),
      figureOf: (elapsedMs, pairs) => (elapsedMs * 1000) / pairs,
      serverCosts: (pairs, work) => redis.serverCosts(pairs, work),
    });
  },
  goals(of) {
    const raw = of("raw SET NX PX + script").median;
    const value = of("holdfast").median / raw;
    const text = "at most 1.20 × the raw pair's time";
    return [{ text, value, isMet: value <= 1.2, line: 1.2 * raw }];
  },
  close: () => redis.stop(),
};
