import { contend, contested, startForked } from "../contention.js";
import { bestOf, type Contestant, type Question } from "../contest.js";
import { atLeast } from "../goals.js";
import { candidates } from "./candidates.js";
import type { Order } from "./contender.js";
import { BenchNodes } from "./nodes.js";

const nodes = new BenchNodes();
const CONTENDER = new URL("./contender.js", import.meta.url);
const CONTENDERS = 10;
const STARVED_MS = 2_000;

export const oneName: Question = {
  store: "redlock",
  name: "one-name",
  title: "10 contenders in 2 processes on one name, 5 nodes, no work inside",
  about:
    "Ten who want the same lock, in two processes: split votes are what a majority has to " +
    "fear.",
  unit: "grants/s",
  better: "higher",
  reason:
    "Workers of one process take turns on one grant, each with a token of its own. Then who " +
    "waited longest elsewhere is woken and has the lock kept for it, so that nobody starves: " +
    "that is a message and a round of votes for up to 32 turns.",
  rounds: 3,
  startsFresh: true,
  takesLong: true,
  async contestants(isQuick) {
    const forMs = isQuick ? 500 : 10_000;
    const ports = await nodes.start();
    return candidates.map(
      ({ name, role, plain }): Contestant => ({
        name,
        role,
        round: async () => {
          const shape = { lock: name, workers: CONTENDERS / 2, forMs, holdMs: [] };
          const order: Order = { candidate: name, ports, ...shape };
          const start = startForked(CONTENDER, order);
          return contested(await contend(order, 2, start, nodes.countedWith(plain)));
        },
      }),
    );
  },
  goals(of, standings) {
    const ours = of("holdfast");
    const waitMs = ours.more["longest wait ms"] ?? Number.NaN;
    return [
      atLeast(3, "the best peer's grants", ours, bestOf("peer", "higher", standings)),
      { text: `longest wait under ${STARVED_MS} ms`, value: waitMs, isMet: waitMs < STARVED_MS },
    ];
  },
  close: () => nodes.stop(),
};
