import type { Question } from "../contest.js";
import { foreignPairs } from "../languages/contestants.js";
import { candidates, PEER, RAW } from "./candidates.js";
import { BenchEtcd, connected, measured } from "./server.js";

const etcd = new BenchEtcd();

const pairsOf = (isQuick: boolean): number => (isQuick ? 50 : 200);

export const uncontended: Question = {
  store: "etcd",
  name: "uncontended",
  title: "acquire and release, one at a time, nobody in the way",
  about: "One task, one name: what a lock costs when nobody is in the way.",
  unit: "µs/pair",
  better: "lower",
  reason:
    "The raw pair itself is less than twice as fast as etcd3's lock: disk and network " +
    "decide. The transaction of a lock also reads the line in front of it.",
  rounds: 21,
  async contestants(isQuick) {
    const pairs = pairsOf(isQuick);
    const url = await etcd.start();
    return Promise.all(
      candidates.map((candidate) =>
        connected(candidate, url, async (locker) => {
          const { elapsedMs, more } = await measured(etcd, pairs, async () => {
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
      store: "etcd",
      address: etcd.address,
      tasks: 1,
      pairs: pairsOf(isQuick),
      figureOf: (elapsedMs, pairs) => (elapsedMs * 1000) / pairs,
      serverCosts: (pairs, work) => etcd.serverCosts(pairs, work),
    });
  },
  goals(of) {
    const ours = of("holdfast").median;
    const raw = of(RAW).median;
    const peer = of(PEER).median;
    const toRaw = ours / raw;
    const toPeer = peer / ours;
    return [
      {
        text: "at most 1.15 × the raw pair's time",
        value: toRaw,
        isMet: toRaw <= 1.15,
        line: 1.15 * raw,
      },
      {
        text: "at least 1.8 × faster than etcd3's lock",
        value: toPeer,
        isMet: toPeer >= 1.8,
        line: peer / 1.8,
      },
    ];
  },
  close: () => etcd.stop(),
};
