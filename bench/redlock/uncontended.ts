import { bestOf, type Contestant, type Question, quantile, type Sample } from "../contest.js";
import { measured } from "../costs.js";
import { atMost } from "../goals.js";
import { type Locker, pairsOf } from "../turns.js";
import { candidates, open } from "./candidates.js";
import { BenchNodes } from "./nodes.js";

const nodes = new BenchNodes();
const NODE_TIMEOUT_MS = 50;

export const uncontended: Question = {
  store: "redlock",
  name: "uncontended",
  title: "acquire and release on 5 nodes, one at a time, nobody in the way",
  about: "One task, one name, five nodes: what a majority costs when nobody is in the way.",
  unit: "µs/pair",
  better: "lower",
  reason:
    "A vote here checks which process of the server answers, whether it may vote and " +
    "which ballot it stored, and writes the ballot beside the lock; a release closes it. That is " +
    "7 commands at each node where a peer has 4, and about twice the instructions of a peer; two " +
    "empty scripts take a third of them. Five servers share two cores with the client: most of " +
    "the time of a pair is theirs.",
  rounds: 11,
  async contestants(isQuick) {
    const pairs = isQuick ? 100 : 500;
    const ports = await nodes.start();
    return candidates.map(({ name, role, plain }): Contestant => {
      const locker = open(name, ports);
      const round = async (): Promise<Sample> => {
        const run = (): Promise<void> => pairsOf(locker, name, pairs);
        const { elapsedMs, more } = await measured(nodes.countedWith(plain), pairs, run);
        return { value: (elapsedMs * 1000) / pairs, more };
      };
      return { name, role, round, close: () => locker.close() };
    });
  },
  goals(of, standings) {
    const [ours, peer] = [of("holdfast"), bestOf("peer", "lower", standings)];
    return [
      atMost(1.2, "the time of the fastest peer", ours, peer),
      atMost(1.6, "the servers' time in its commands", ours, peer, "in commands µs/pair"),
    ];
  },
  close: () => nodes.stop(),
};

export const oneStopped: Question = {
  store: "redlock",
  name: "one-stopped",
  title: "acquire on 5 nodes, healthy and while one of them is stopped",
  about: "The same while one node hangs: its connections stay open, and it says nothing.",
  unit: "ms p99",
  better: "lower",
  rounds: 5,
  async contestants(isQuick) {
    const pairs = isQuick ? 50 : 300;
    const ports = await nodes.start();
    return [true, false].map((isHealthy): Contestant => {
      const locker = open("holdfast", ports);
      return {
        name: isHealthy ? "holdfast, healthy" : "holdfast, one stopped",
        role: "holdfast",
        round: async () => {
          if (!isHealthy) await nodes.last.pause();
          try {
            return await slowestOf(locker, `${isHealthy}`, pairs);
          } finally {
            if (!isHealthy) await nodes.last.resume();
          }
        },
        close: () => locker.close(),
      };
    });
  },
  goals(of) {
    const limitMs = NODE_TIMEOUT_MS + 2 * of("holdfast, healthy").median;
    const value = of("holdfast, one stopped").median / limitMs;
    return [{ text: "p99 at most nodeTimeout + 2 × the healthy p99", value, isMet: value <= 1 }];
  },
  close: () => nodes.stop(),
};

async function slowestOf(locker: Locker, name: string, pairs: number): Promise<Sample> {
  const tookMs: number[] = [];
  const { more } = await measured(null, pairs, async () => {
    for (let pair = 0; pair < pairs; pair += 1) {
      const startMs = performance.now();
      const release = await locker.acquire(name);
      tookMs.push(performance.now() - startMs);
      await release();
    }
  });
  return { value: quantile(tookMs, 0.99), more: { "p50 ms": quantile(tookMs, 0.5), ...more } };
}
