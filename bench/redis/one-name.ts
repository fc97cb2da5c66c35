import { contend, contested, startForked } from "../contention.js";
import { bestOf, type Contestant, type Question } from "../contest.js";
import { atLeast } from "../goals.js";
import { foreignTurns } from "../languages/contestants.js";
import { candidatesFor } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const CONTENDER = new URL("./contender.js", import.meta.url);
const PROCESSES = 2;
const WORKERS = 10;

const forMsOf = (isQuick: boolean): number => (isQuick ? 300 : 3_000);

export const oneName: Question = {
  store: "redis",
  name: "one-name",
  title: "2 processes with 10 workers each on one name, no work inside",
  about:
    "Everybody wants the same lock, and nobody keeps it: the price of contention, and its " +
    "fairness.",
  unit: "grants/s",
  better: "higher",
  reason:
    "Peers are measured at their best: the worker that released the lock takes it again at " +
    "once, in the same process, and the other workers wait for hundreds of milliseconds. Here" +
    " the lock changes process after 32 turns at the latest, and in strict order with every " +
    "grant. A bare message from one process to another already takes longer than a grant of a " +
    "peer.",
  rounds: 5,
  startsFresh: true,
  async contestants(isQuick) {
    const forMs = forMsOf(isQuick);
    const port = await redis.start();
    return candidatesFor(isQuick)
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role, plain }): Contestant => ({
          name,
          role,
          round: async () => {
            const order = {
              candidate: name,
              port,
              lock: name,
              workers: WORKERS,
              forMs,
              holdMs: [],
            };
            const start = startForked(CONTENDER, order);
            return contested(await contend(order, PROCESSES, start, redis.countedWith(plain)));
          },
        }),
      );
  },
  foreign(isQuick) {
    const turns = { workers: WORKERS, forMs: forMsOf(isQuick), holdMs: [] };
    return foreignTurns(
      redis.address,
      turns,
      PROCESSES,
      (plain) => redis.countedWith(plain),
      contested,
    );
  },
  goals(of, standings) {
    const best = bestOf("peer", "higher", standings);
    const [bounded, strict] = [of("holdfast"), of("holdfast strict")];
    const waitMs = bounded.more["longest wait ms"] ?? Number.NaN;
    const share = strict.more["Jain index"] ?? Number.NaN;
    return [
      atLeast(10, "the best peer's grants, bounded", bounded, best),
      { text: "bounded: longest wait under 100 ms", value: waitMs, isMet: waitMs < 100 },
      atLeast(0.98, "the best peer's grants, strict", strict, best),
      { text: "strict: Jain index at least 0.99", value: share, isMet: share >= 0.99 },
    ];
  },
  close: () => redis.stop(),
};
