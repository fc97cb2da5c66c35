import { connect } from "holdfast";
import type { Contestant, Question } from "../contest.js";
import { measured } from "../costs.js";
import { atMost } from "../goals.js";
import { pairsAtOnce } from "../turns.js";
import { BenchRedis, connected } from "./server.js";

const redis = new BenchRedis();

const MANY = 100;
const HERE = "in the thread of the caller";
const THERE = "in a thread of its own";

export const thread: Question = {
  store: "redis",
  name: "thread",
  title: `acquire and release, one at a time and ${MANY} at once, with thread: true`,
  about: "The price of each call's way to the thread and back.",
  unit: "µs/pair",
  better: "lower",
  reason:
    "A call and its answer wake the other thread once each, and are copied. A caller that waits " +
    "for one pair at a time pays for both wake-ups; calls of one turn travel together.",
  rounds: 21,
  async contestants(isQuick) {
    const port = await redis.start();
    const contestant = (name: string, isThread: boolean, tasks: number): Promise<Contestant> => {
      const each = Math.ceil((isQuick ? 300 : 1_000) / tasks);
      const pairs = each * tasks;
      const open = async () => {
        const locks = await connect(`redis://127.0.0.1:${port}`, { thread: isThread });
        return {
          acquire: async (lock: string) => {
            const lease = await locks.mutex(lock).acquire();
            return () => lease.release();
          },
          close: () => locks.close(),
        };
      };
      return connected({ name, role: "holdfast", open }, port, async (locker) => {
        const run = (): Promise<void> => pairsAtOnce(locker, name, tasks, each);
        const { elapsedMs, more } = await measured(redis, pairs, run);
        return { value: (elapsedMs * 1000) / pairs, more };
      });
    };
    return Promise.all([
      contestant(HERE, false, 1),
      contestant(THERE, true, 1),
      contestant(`${HERE}, ${MANY} at once`, false, MANY),
      contestant(`${THERE}, ${MANY} at once`, true, MANY),
    ]);
  },
  goals(of) {
    const many = `, ${MANY} at once`;
    return [
      atMost(2, "the time without a thread, one at a time", of(THERE), of(HERE)),
      atMost(2, `the time without a thread${many}`, of(THERE + many), of(HERE + many)),
    ];
  },
  close: () => redis.stop(),
};
