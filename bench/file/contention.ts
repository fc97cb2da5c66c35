import { contend, contested, startForked } from "../contention.js";
import type { Contestant, Question } from "../contest.js";
import { atLeast } from "../goals.js";
import { BenchFolder } from "./bench-folder.js";
import { candidates } from "./candidates.js";
import type { Order } from "./contender.js";

const bench = new BenchFolder();
const CONTENDER = new URL("./contender.js", import.meta.url);
const PROCESSES = 4;
const WORKERS = 4;

export const contention: Question = {
  store: "file",
  name: "contention",
  title: "4 processes with 4 workers each on one name, no work inside",
  about: "Everybody wants the same lock, and nobody keeps it: the price of contention.",
  unit: "grants/s",
  better: "higher",
  reason:
    "A change of process is two transactions, a message and the waking of a process, and no " +
    "part of it is long; the 32 turns in between take a tenth of the time.",
  rounds: 3,
  startsFresh: true,
  async contestants(isQuick) {
    const forMs = isQuick ? 500 : 5_000;
    const folder = bench.make();
    return candidates
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role }): Contestant => ({
          name,
          role,
          round: async () => {
            const shape = { lock: "one", workers: WORKERS, forMs, holdMs: [] };
            const order: Order = { candidate: name, folder, ...shape };
            return contested(await contend(order, PROCESSES, startForked(CONTENDER, order)));
          },
        }),
      );
  },
  goals: (of) => [atLeast(20, "proper-lockfile's grants", of("holdfast"), of("proper-lockfile"))],
  close: () => bench.remove(),
};
