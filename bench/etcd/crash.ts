import type { Contestant, Question } from "../contest.js";
import { takeover } from "../takeover.js";
import { candidates } from "./candidates.js";
import { BenchEtcd } from "./server.js";

const etcd = new BenchEtcd();
const HOLDER = new URL("./holder.js", import.meta.url);
const TTL_MS = 3_000;
/** etcd looks for leases that are over every half second, and revokes them by a proposal. */
const LOOK_MS = 1_000;

export const crash: Question = {
  store: "etcd",
  name: "crash",
  title: `a holder is killed (ttl ${TTL_MS} ms), until the waiter has the lock`,
  about: "A holder dies without a word: how long the lock stays with the dead.",
  unit: "ms",
  better: "lower",
  rounds: 5,
  startsFresh: true,
  takesLong: true,
  async contestants() {
    const url = await etcd.start();
    return candidates
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role, open }): Contestant => ({
          name,
          role,
          round: async () => {
            const order = { candidate: name, url, lock: `${name}:crash`, ttlMs: TTL_MS };
            return await takeover(HOLDER, order, await open(url, TTL_MS));
          },
        }),
      );
  },
  goals(of) {
    const value = of("holdfast").median;
    const line = TTL_MS + LOOK_MS;
    return [{ text: `at most ${line} ms`, value, isMet: value <= line, line }];
  },
  close: () => etcd.stop(),
};
