import { once } from "node:events";
import { contend, handedOver, lags, startForked } from "../contention.js";
import { bestOf, type Contestant, type Question } from "../contest.js";
import { forked } from "../forked.js";
import { atMost } from "../goals.js";
import { candidatesFor } from "./candidates.js";
import { BenchPostgres, type Durability } from "./server.js";

const CONTENDER = new URL("./contender.js", import.meta.url);
const NOTIFIER = new URL("./notifier.js", import.meta.url);
const RAW = "raw NOTIFY to notification";

/** One waiter at a time. A poller that looks every 10 ms meets the release anywhere in a pause. */
const TURNS = {
  workers: 1,
  holdMs: Array.from({ length: 101 }, () => 20 + Math.floor(Math.random() * 11)),
  restMs: 15,
};

function question(name: string, durability: Durability, most: number): Question {
  const postgres = new BenchPostgres(durability);
  return {
    store: "postgres",
    name,
    title: `from release to the next holder, synchronous_commit ${durability}`,
    about:
      "Two processes take turns, one holds and one waits: from the call of release to the first " +
      "statement of the next holder. Each holds for 20 to 30 ms at random and rests before it " +
      "asks again, so that the lock always changes hands.",
    unit: "ms p50",
    better: "lower",
    reason:
      "The release of a lock with waiters finds the next one and writes the new state in one " +
      "transaction, and its notification leaves after the commit; the floor has none of this. A " +
      "waiter of advisory-lock is a statement that waits inside the server, on a connection that " +
      "each waiter has for itself.",
    rounds: 7,
    startsFresh: true,
    async contestants(isQuick) {
      const forMs = isQuick ? 2_000 : 4_000;
      const url = await postgres.start();
      const locking = candidatesFor(isQuick)
        .filter(({ role }) => role !== "floor")
        .map(
          ({ name, role }): Contestant => ({
            name,
            role,
            round: async () => {
              const order = { candidate: name, url, lock: name, ...TURNS, forMs };
              return handedOver(await contend(order, 2, startForked(CONTENDER, order), postgres));
            },
          }),
        );
      return [...locking, rawNotification(url, forMs)];
    },
    goals(of, standings) {
      const ours = of("holdfast");
      return [
        atMost(most, "a raw NOTIFY, p50", ours, of(RAW)),
        atMost(1, "the best peer's, p50", ours, bestOf("peer", "lower", standings)),
      ];
    },
    close: () => postgres.stop(),
  };
}

/** The same way without a lock: one process notifies, the other hears it. */
function rawNotification(url: string, forMs: number): Contestant {
  return {
    name: RAW,
    role: "floor",
    round: async () => {
      const child = forked(NOTIFIER, { url, forMs });
      try {
        const [tookMs] = await once(child, "message");
        return lags(tookMs as number[]);
      } finally {
        child.kill("SIGKILL");
      }
    },
  };
}

export const handoff: Question = question("handoff", "on", 2.8);
export const handoffRelaxed: Question = question("handoff-relaxed", "off", 1.3);
