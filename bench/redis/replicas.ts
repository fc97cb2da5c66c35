import type { Question } from "../contest.js";
import { measured } from "../costs.js";
import { atMost } from "../goals.js";
import { pairsAtOnce } from "../turns.js";
import { type Candidate, holdfast, raw } from "./candidates.js";
import { BenchRedis, connected } from "./server.js";

const OURS = "holdfast, replicas 1";
const FLOOR = "raw SET NX PX, WAIT + script";

const candidates: readonly Candidate[] = [
  holdfast(OURS, { replicas: 1 }),
  holdfast("holdfast, replicas 0"),
  raw(FLOOR, { replicas: 1 }),
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
            const pairs = tasks * pairsPerTask;
            const servers = redis.countedWith(candidate.plain);
            const { elapsedMs, more } = await measured(servers, pairs, () =>
              pairsAtOnce(locker, candidate.name, tasks, pairsPerTask),
            );
            return { value: (elapsedMs * 1000) / pairs, more };
          }),
        ),
      );
    },
    goals: (of) => [atMost(most, "the time of the raw pair with WAIT", of(OURS), of(FLOOR))],
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
