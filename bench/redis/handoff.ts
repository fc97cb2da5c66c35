import { once } from "node:events";
import { contend, handedOver, lags } from "../contention.js";
import type { Contestant, Question } from "../contest.js";
import { forked } from "../forked.js";
import { candidatesFor } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const CONTENDER = new URL("./contender.js", import.meta.url);
const ECHO = new URL("./publisher.js", import.meta.url);
const RAW = "raw PUBLISH to message";

export const handoff: Question = {
  store: "redis",
  name: "handoff",
  title: "between two processes, from release to the next holder",
  about:
    "Two processes take turns: from the call of release to the first statement of the " +
    "next holder.",
  unit: "ms p50",
  better: "lower",
  reason:
    "Both processes and the server sleep between two turns, so everything runs cold. " +
    "About two thirds of the time pass between the call of release and the arrival of the " +
    "push: a script that finds the next waiter and writes the new state, instead of one " +
    "PUBLISH; the rest is the confirm, which is written before the holder runs.",
  rounds: 7,
  startsFresh: true,
  async contestants(isQuick) {
    const forMs = isQuick ? 300 : 2_000;
    const port = await redis.start();
    const locking = candidatesFor(isQuick)
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role }): Contestant => ({
          name,
          role,
          round: async () => {
            const order = { candidate: name, port, lock: name, workers: 1, forMs, holdMs: 3 };
            return handedOver(await contend(order, 2, CONTENDER));
          },
        }),
      );
    return [...locking, rawMessage(port, forMs)];
  },
  goals(of) {
    const raw = of(RAW).median;
    const value = of("holdfast").median / raw;
    const text = "p50 at most 1.3 × a raw message";
    return [{ text, value, isMet: value <= 1.3, line: 1.3 * raw }];
  },
  close: () => redis.stop(),
};

/** The same way without a lock: one process publishes, the other hears it. */
function rawMessage(port: number, forMs: number): Contestant {
  return {
    name: RAW,
    role: "floor",
    round: async () => {
      const child = forked(ECHO, { port, forMs });
      try {
        const [tookMs] = await once(child, "message");
        return lags(tookMs as number[]);
      } finally {
        child.kill("SIGKILL");
      }
    },
  };
}
