import type { Contestant, Question } from "../contest.js";
import { measured } from "../costs.js";
import { atMost } from "../goals.js";
import { pairsOf } from "../turns.js";
import { BenchFolder } from "./bench-folder.js";
import { candidates } from "./candidates.js";

const bench = new BenchFolder();

export const uncontended: Question = {
  store: "file",
  name: "uncontended",
  title: "acquire and release, one at a time, nobody in the way",
  about: "One task, one name: what a lock costs when nobody is in the way.",
  unit: "µs/pair",
  better: "lower",
  reason:
    "A pair is two transactions, each of which asks whether another process has written, runs " +
    "the ledger on the document of the name and writes it, with the last token in the same page.",
  rounds: 21,
  async contestants(isQuick) {
    const pairs = isQuick ? 300 : 1_000;
    const folder = bench.make();
    return candidates.map(({ name, role, open }): Contestant => {
      const locker = open(folder);
      return {
        name,
        role,
        round: async () => {
          const run = (): Promise<void> => pairsOf(locker, "pair", pairs);
          const { elapsedMs, more } = await measured(null, pairs, run);
          return { value: (elapsedMs * 1000) / pairs, more };
        },
        close: () => locker.close(),
      };
    });
  },
  goals(of) {
    const [ours, peer] = [of("holdfast"), of("proper-lockfile")];
    const value = peer.median / ours.median;
    const text = "at least 5 × proper-lockfile's rate";
    return [
      { text, value, isMet: value >= 5 },
      atMost(1.7, "the time of two bare transactions", ours, of("raw SQLite transactions")),
    ];
  },
  close: () => bench.remove(),
};
