import type { Contestant, Question } from "../contest.js";
import { takeover } from "../takeover.js";
import { candidates, open } from "./candidates.js";
import { BenchNodes } from "./nodes.js";

const nodes = new BenchNodes();
const HOLDER = new URL("./holder.js", import.meta.url);
const TTL_MS = 2_000;

export const crash: Question = {
  store: "redlock",
  name: "crash",
  title: `a holder is killed (5 nodes, ttl ${TTL_MS} ms), until the waiter has the lock`,
  about: "A holder dies without a word: how long the lock stays with the dead.",
  unit: "ms",
  better: "lower",
  rounds: 5,
  startsFresh: true,
  takesLong: true,
  async contestants() {
    const ports = await nodes.start();
    return candidates.map(
      ({ name, role }): Contestant => ({
        name,
        role,
        round: () => {
          const order = { candidate: name, ports, lock: `${name}:crash`, ttlMs: TTL_MS };
          return takeover(HOLDER, order, open(name, ports, TTL_MS));
        },
      }),
    );
  },
  goals(of) {
    const value = of("holdfast").median;
    const line = TTL_MS + 100;
    return [{ text: `at most ${line} ms`, value, isMet: value <= line, line }];
  },
  close: () => nodes.stop(),
};
