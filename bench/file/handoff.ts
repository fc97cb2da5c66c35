import { once } from "node:events";
import { contend, handedOver, lags, startForked } from "../contention.js";
import type { Contestant, Question } from "../contest.js";
import { forked } from "../forked.js";
import { atMost } from "../goals.js";
import { BenchFolder } from "./bench-folder.js";
import { candidates } from "./candidates.js";
import type { Order } from "./contender.js";

const bench = new BenchFolder();
const CONTENDER = new URL("./contender.js", import.meta.url);
const ECHO = new URL("./echo.js", import.meta.url);
const RAW = "raw unix socket, there and back";
/** One waiter at a time. A poller that looks every 10 ms meets the release anywhere in a pause. */
const TURNS = {
  workers: 1,
  holdMs: Array.from({ length: 101 }, () => 20 + Math.floor(Math.random() * 11)),
  restMs: 15,
};
/** Both processes of the round trip are as cold as those of a handoff. */
const PAUSE_MS = 25;

export const handoff: Question = {
  store: "file",
  name: "handoff",
  title: "between two processes, from release to the next holder",
  about:
    "Two processes take turns, one holds and one waits: from the call of release to the first " +
    "statement of the next holder. Each holds for 20 to 30 ms at random and rests before it asks " +
    "again, so that the lock always changes hands.",
  unit: "ms p50",
  better: "lower",
  reason:
    "A handoff is a transaction, a message and a transaction of the next holder, who confirms " +
    "before it runs. By one clock, the two transactions take 45 % of the time, the message and " +
    "the waking of the next process a fifth, the code before, between and after them the rest. " +
    "All of it runs after a pause, some ten times slower than in a loop.",
  rounds: 7,
  startsFresh: true,
  async contestants(isQuick) {
    const forMs = isQuick ? 600 : 4_000;
    const folder = bench.make();
    const locking = candidates
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role }): Contestant => ({
          name,
          role,
          round: async () => {
            const order: Order = { candidate: name, folder, lock: "two", ...TURNS, forMs };
            return handedOver(await contend(order, 2, startForked(CONTENDER, order)));
          },
        }),
      );
    return [...locking, roundTrip(folder, forMs)];
  },
  goals: (of) => [atMost(4, "a unix-socket round trip, p50", of("holdfast"), of(RAW))],
  close: () => bench.remove(),
};

/** The same way without a lock: one process asks, the other answers. */
function roundTrip(folder: string, forMs: number): Contestant {
  return {
    name: RAW,
    role: "floor",
    round: async () => {
      const order = { path: `${folder}/echo`, forMs, pauseMs: PAUSE_MS };
      const child = forked(ECHO, order);
      try {
        const [times] = await once(child, "message");
        return lags(times as number[]);
      } finally {
        child.kill("SIGKILL");
      }
    },
  };
}
