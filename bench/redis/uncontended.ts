import { bestOf, type Question } from "../contest.js";
import { measured } from "../costs.js";
import { atMost } from "../goals.js";
import { foreignPairs } from "../languages/contestants.js";
import { pairsOf } from "../turns.js";
import { candidatesFor, holdfast } from "./candidates.js";
import { BenchRedis, connected } from "./server.js";

const redis = new BenchRedis();

const SENT = "holdfast, release sent";

const countOf = (isQuick: boolean): number => (isQuick ? 300 : 1_000);

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
    "write of the register). Two empty scripts take as many instructions of the server as the " +
    "raw pair, two scripts with these six calls alone 2.2 times as many, a pair here 3.4 times. " +
    "Two such calls with no lock around them cost the client as much CPU as the raw pair. The " +
    "rest is the client's: options, lease, keeper, batch and codec. They take 5 µs in a loop and " +
    "many times that in a process that sleeps between two answers and wakes up with cold caches.",
  rounds: 21,
  async contestants(isQuick) {
    const pairs = countOf(isQuick);
    const port = await redis.start();
    return Promise.all(
      [...candidatesFor(isQuick), holdfast(SENT, { release: "sent" })].map((candidate) =>
        connected(candidate, port, async (locker) => {
          const run = (): Promise<void> => pairsOf(locker, candidate.name, pairs);
          const { elapsedMs, more } = await measured(
            redis.countedWith(candidate.plain),
            pairs,
            run,
          );
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
      pairs: countOf(isQuick),
      figureOf: (elapsedMs, pairs) => (elapsedMs * 1000) / pairs,
      servers: (plain) => redis.countedWith(plain),
    });
  },
  goals(of, standings) {
    const [ours, raw] = [of("holdfast"), of("raw SET NX PX + script")];
    return [
      atMost(1.12, "the raw pair's time", ours, raw),
      atMost(0.75, 'the raw pair\'s time with release: "sent"', of(SENT), raw),
      atMost(1, "the best peer's time", ours, bestOf("peer", "lower", standings)),
      atMost(1.1, "the client CPU of the raw pair", ours, raw, "client CPU µs/pair"),
      atMost(1.8, "the server's time in raw commands", ours, raw, "in commands µs/pair"),
    ];
  },
  close: () => redis.stop(),
};
