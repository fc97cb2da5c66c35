import type { Question } from "../contest.js";
import { candidates, PEER, RAW } from "./candidates.js";
import { BenchEtcd, connected } from "./server.js";

const etcd = new BenchEtcd();

/** One task, one name: what a lock costs when nobody is in the way. */
export const uncontended: Question = {
  store: "etcd",
  name: "uncontended",
  title: "acquire and release, one at a time, nobody in the way",
  unit: "µs/pair",
  better: "lower",
  reason:
    "The raw pair itself is less than twice as fast as etcd3's lock: disk and network " +
    "decide. The transaction of a lock also reads the line in front of it.",
  rounds: 21,
  async contestants(isQuick) {
    const pairs = isQuick ? 50 : 200;
    const url = await etcd.start();
    return Promise.all(
      candidates.map((candidate) =>
        connected(candidate, url, async (locker) => {
          const startMs = performance.now();
          for (let pair = 0; pair < pairs; pair += 1) {
            const release = await locker.acquire(candidate.name);
            await release();
          }
          return { value: ((performance.now() - startMs) * 1000) / pairs };
        }),
      ),
    );
  },
  goals(of) {
    const ours = of("holdfast").median;
    const toRaw = ours / of(RAW).median;
    const toPeer = of(PEER).median / ours;
    return [
      { text: "at most 1.15 × the raw pair's time", value: toRaw, isMet: toRaw <= 1.15 },
      { text: "at least 1.8 × faster than etcd3's lock", value: toPeer, isMet: toPeer >= 1.8 },
    ];
  },
  close: () => etcd.stop(),
};
