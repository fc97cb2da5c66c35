import type { Contestant, Question } from "../contest.js";
import { takeover } from "../takeover.js";
import { BenchFolder } from "./bench-folder.js";
import { candidates } from "./candidates.js";

const bench = new BenchFolder();
const HOLDER = new URL("./holder.js", import.meta.url);
/** The least that proper-lockfile takes. */
const TTL_MS = 2_000;

export const crash: Question = {
  store: "file",
  name: "crash",
  title: `a holder is killed (ttl ${TTL_MS} ms), until the waiter has the lock`,
  about: "A holder dies without a word: how long the lock stays with the dead.",
  unit: "ms",
  better: "lower",
  rounds: 5,
  startsFresh: true,
  takesLong: true,
  async contestants() {
    const folder = bench.make();
    return candidates
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role, open }): Contestant => ({
          name,
          role,
          round: async () => {
            const order = { candidate: name, folder, lock: "crash", ttlMs: TTL_MS };
            return await takeover(HOLDER, order, open(folder, TTL_MS));
          },
        }),
      );
  },
  goals(of) {
    const value = of("holdfast").median;
    const line = TTL_MS + 50;
    return [{ text: `at most ${line} ms`, value, isMet: value <= line, line }];
  },
  close: () => bench.remove(),
};
