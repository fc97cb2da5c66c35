import { once } from "node:events";
import { contend, handedOver, lags, startForked } from "../contention.js";
import { bestOf, type Contestant, type Question } from "../contest.js";
import { forked } from "../forked.js";
import { atMost } from "../goals.js";
import { foreignTurns } from "../languages/contestants.js";
import { candidatesFor } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const CONTENDER = new URL("./contender.js", import.meta.url);
const ECHO = new URL("./publisher.js", import.meta.url);
const RAW = "raw PUBLISH to message";

/** One waiter at a time. A poller that looks every 10 ms meets the release anywhere in a pause. */
const TURNS = {
  workers: 1,
  holdMs: Array.from({ length: 101 }, () => 20 + Math.floor(Math.random() * 11)),
  restMs: 15,
};

const forMsOf = (isQuick: boolean): number => (isQuick ? 600 : 4_000);

export const handoff: Question = {
  store: "redis",
  name: "handoff",
  title: "between two processes, from release to the next holder",
  about:
    "Two processes take turns, one holds and one waits: from the call of release to the first " +
    "statement of the next holder. Each holds for 20 to 30 ms at random and rests before it asks " +
    "again, so that the lock always changes hands.",
  unit: "ms p50",
  better: "lower",
  reason:
    "Both processes and the server sleep between two turns, so everything runs cold. The same " +
    "commands without the library around them, with the confirm written before the next holder " +
    "goes on, took 1.34 and 1.69 times a raw message in two runs. The rest is the code in both " +
    "processes; bench/redis/time-line.ts shows each step. A push that leaves before the answer " +
    "to the release arrives about 0.04 ms sooner, but the further command that this takes costs " +
    "more.",
  rounds: 7,
  startsFresh: true,
  async contestants(isQuick) {
    const forMs = forMsOf(isQuick);
    const port = await redis.start();
    const locking = candidatesFor(isQuick)
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role, plain }): Contestant => ({
          name,
          role,
          round: async () => {
            const order = { candidate: name, port, lock: name, ...TURNS, forMs };
            const start = startForked(CONTENDER, order);
            return handedOver(await contend(order, 2, start, redis.countedWith(plain)));
          },
        }),
      );
    return [...locking, rawMessage(port, forMs)];
  },
  foreign(isQuick) {
    const turns = { ...TURNS, forMs: forMsOf(isQuick) };
    return foreignTurns(redis.address, turns, 2, (plain) => redis.countedWith(plain), handedOver);
  },
  goals(of, standings) {
    const ours = of("holdfast");
    const peerMs = bestOf("peer", "lower", standings).median;
    const p99Ms = ours.more["p99 ms"] ?? Number.NaN;
    return [
      atMost(1.5, "a raw message, p50", ours, of(RAW)),
      { text: "p99 at most the best peer's p50", value: p99Ms / peerMs, isMet: p99Ms <= peerMs },
    ];
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
