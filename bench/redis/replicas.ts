import type { Goal, Question, Standing } from "../contest.js";
import { type Candidate, holdfast, raw } from "./candidates.js";
import { BenchRedis, connected, measured } from "./server.js";

const OURS = "holdfast, replicas 1";
const FLOOR = "raw SET NX PX, WAIT + script";

const candidates: readonly Candidate[] = [
  holdfast(OURS, "bounded", 1),
  holdfast("holdfast, replicas 0", "bounded"),
  raw(FLOOR, 1),
  raw("raw SET NX PX + script"),
];

/** The price of a replica that must have every grant, for so many tasks at once. */
function replicas(
  tasks: number,
  texts: Pick<Question, "name" | "title" | "about" | "reason">,
  most: number,
): Question {
  const redis = new BenchRedis(1);
  return {
    store: "redis",
    ...texts,
    unit: "µs/pair",
    better: "lower",
    rounds: 15,
    async contestants(isQuick) {
      const pairsPerTask = Math.ceil((isQuick ? 300 : 2_000) / tasks);
      const port = await redis.start();
      return Promise.all(
        candidates.map((candidate) =>
          connected(candidate, port, async (locker) => {
            const task = async (_: unknown, index: number): Promise<void> => {
              for (let pair = 0; pair < pairsPerTask; pair += 1) {
                const release = await locker.acquire(`${candidate.name}:${index}`);
                await release();
              }
            };
            const pairs = tasks * pairsPerTask;
            const { elapsedMs, more } = await measured(redis, candidate, pairs, async () => {
              await Promise.all(Array.from({ length: tasks }, task));
            });
            return { value: (elapsedMs * 1000) / pairs, more };
          }),
        ),
      );
    },
    goals(of: (name: string) => Standing): readonly Goal[] {
      const floor = of(FLOOR).median;
      const value = of(OURS).median / floor;
      const text = `at most ${most.toFixed(2)} × the time of the raw pair with WAIT`;
      return [{ text, value, isMet: value <= most, line: most * floor }];
    },
    close: () => redis.stop(),
  };
}

export const replicated: Question = replicas(
  1,
  {
    name: "replicas",
    title: "with one replica that must have every grant, one at a time",
    about:
      "One task, one name, and `replicas: 1`: what it costs to wait for a replica, beside a " +
      "plain key and `WAIT` on one connection.",
    reason:
      "The way to the replica and back adds as much to Holdfast's pair as to the raw one, by " +
      "ratio. Behind each `WAIT` the server also names the connection and the history of its " +
      "data. The machine was shared with other work, which shows in the spread.",
  },
  1.5,
);

export const replicatedNames: Question = replicas(
  100,
  {
    name: "replicas-names",
    title: "with one replica that must have every grant, 100 names at once",
    about: "100 tasks, a name each, and `replicas: 1`: those that come together share one `WAIT`.",
    reason: "The rest is the work of the client itself.",
  },
  0.5,
);
