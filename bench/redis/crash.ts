import type { Contestant, Question } from "../contest.js";
import { takeover } from "../takeover.js";
import { candidatesFor } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const HOLDER = new URL("./holder.js", import.meta.url);
const TTL_MS = 1_000;

export const crash: Question = {
  store: "redis",
  name: "crash",
  title: `a holder is killed (ttl ${TTL_MS} ms), until the waiter has the lock`,
  about: "A holder dies without a word: how long the lock stays with the dead.",
  unit: "ms",
  better: "lower",
  rounds: 9,
  startsFresh: true,
  takesLong: true,
  async contestants(isQuick) {
    const port = await redis.start();
    return candidatesFor(isQuick)
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role, open }): Contestant => ({
          name,
          role,
          round: async () => {
            const order = { candidate: name, port, lock: `${name}:crash`, ttlMs: TTL_MS };
            return await takeover(HOLDER, order, await open(port, TTL_MS));
          },
        }),
      );
  },
  goals(of) {
    const value = of("holdfast").median;
    const line = TTL_MS + 50;
    return [{ text: `at most ${line} ms`, value, isMet: value <= line, line }];
  },
  close: () => redis.stop(),
};
