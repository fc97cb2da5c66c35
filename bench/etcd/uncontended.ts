import type { Question } from "../contest.js";
import { measured } from "../costs.js";
import { atMost } from "../goals.js";
import { foreignPairs } from "../languages/contestants.js";
import { pairsOf } from "../turns.js";
import { candidates, PEER, RAW } from "./candidates.js";
import { BenchEtcd, connected } from "./server.js";

const etcd = new BenchEtcd();

const countOf = (isQuick: boolean): number => (isQuick ? 50 : 200);

export const uncontended: Question = {
  store: "etcd",
  name: "uncontended",
  title: "acquire and release, one at a time, nobody in the way",
  about: "One task, one name: what a lock costs when nobody is in the way.",
  unit: "µs/pair",
  better: "lower",
  reason:
    "The transaction of a lock compares the key of its session and reads the queue in front of " +
    "it: a twentieth to a tenth of the raw pair. The rest is processor time of the process.",
  rounds: 21,
  async contestants(isQuick) {
    const pairs = countOf(isQuick);
    const url = await etcd.start();
    return Promise.all(
      candidates.map((candidate) =>
        connected(candidate, url, async (locker) => {
          const run = (): Promise<void> => pairsOf(locker, candidate.name, pairs);
          const { elapsedMs, more } = await measured(etcd, pairs, run);
          return { value: (elapsedMs * 1000) / pairs, more };
        }),
      ),
    );
  },
  foreign(isQuick) {
    return foreignPairs({
      store: "etcd",
      address: etcd.address,
      tasks: 1,
      pairs: countOf(isQuick),
      figureOf: (elapsedMs, pairs) => (elapsedMs * 1000) / pairs,
      servers: () => etcd,
    });
  },
  goals(of) {
    const [ours, peer] = [of("holdfast"), of(PEER)];
    const value = peer.median / ours.median;
    const text = "at least 1.8 × faster than etcd3's lock";
    return [
      atMost(1.08, "the raw pair's time", ours, of(RAW)),
      { text, value, isMet: value >= 1.8 },
    ];
  },
  close: () => etcd.stop(),
};
