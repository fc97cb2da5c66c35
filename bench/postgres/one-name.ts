import { contend, contested, startForked } from "../contention.js";
import { bestOf, type Contestant, type Question } from "../contest.js";
import { atLeast } from "../goals.js";
import { candidatesFor } from "./candidates.js";
import { BenchPostgres } from "./server.js";

const postgres = new BenchPostgres("on");
const CONTENDER = new URL("./contender.js", import.meta.url);
const PROCESSES = 2;
const WORKERS = 10;

export const oneName: Question = {
  store: "postgres",
  name: "one-name",
  title: "2 processes with 10 workers each on one name, no work inside",
  about:
    "Everybody wants the same lock, and nobody keeps it: the price of contention, and its " +
    "fairness.",
  unit: "grants/s",
  better: "higher",
  rounds: 5,
  startsFresh: true,
  async contestants(isQuick) {
    const forMs = isQuick ? 300 : 3_000;
    const url = await postgres.start();
    return candidatesFor(isQuick)
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role }): Contestant => ({
          name,
          role,
          round: async () => {
            const turns = { lock: name, workers: WORKERS, forMs, holdMs: [] };
            const order = { candidate: name, url, ...turns };
            const start = startForked(CONTENDER, order);
            return contested(await contend(order, PROCESSES, start, postgres));
          },
        }),
      );
  },
  goals(of, standings) {
    const ours = of("holdfast");
    const waitMs = ours.more["longest wait ms"] ?? Number.NaN;
    return [
      atLeast(1, "the best peer's grants", ours, bestOf("peer", "higher", standings)),
      { text: "longest wait under 500 ms", value: waitMs, isMet: waitMs < 500 },
    ];
  },
  close: () => postgres.stop(),
};
