import { Holdfast, type Lock } from "holdfast";
import { memoryStore } from "holdfast/memory";
import type { Contestant, Question } from "../contest.js";

export const waiters: Question = {
  store: "memory",
  name: "waiters",
  title: "one handoff, with few and with many in the queue",
  about: "The cost of one handoff must not grow with the number of waiters.",
  unit: "CPU µs/handoff",
  better: "lower",
  rounds: 9,
  async contestants(isQuick) {
    // a turn in a local queue is short: fewer of them would be lost in what else the machine does.
    const handoffs = isQuick
      ? { bounded: 2_000, strict: 1_000 }
      : { bounded: 20_000, strict: 3_000 };
    const counts = isQuick ? [10, 1_000] : [10, 100, 1_000, 10_000];
    return (["bounded", "strict"] as const).flatMap((fairness) =>
      counts.map((count) => contestant(fairness, count, handoffs[fairness])),
    );
  },
  goals(_, standings) {
    return ["bounded", "strict"].map((fairness) => {
      const own = standings.filter(({ name }) => name.startsWith(fairness));
      const few = own[0]?.median ?? Number.NaN;
      const value = (own.at(-1)?.median ?? Number.NaN) / few;
      const text = `${fairness}: at most 1.5 × the cost with 10`;
      return { text, value, isMet: value <= 1.5, line: 1.5 * few };
    });
  },
};

/** At most so many are timed off the head of one queue, so that a long one stays long. */
const MAX_OF_A_QUEUE = 1_000;
/** Between two collections of garbage, so that few fall into what is timed. */
const BETWEEN_COLLECTIONS = 500;

/** Fills the queue, lets it settle, then times handoffs off its head, until there were enough. */
function contestant(fairness: "bounded" | "strict", waiting: number, handoffs: number): Contestant {
  return {
    name: `${fairness}, ${waiting.toLocaleString("en")} wait`,
    role: "holdfast",
    round: async () => {
      const locks = new Holdfast(memoryStore(), { fairness });
      const lock = locks.mutex("a");
      const step = Math.min(waiting, MAX_OF_A_QUEUE);
      let totalUs = 0;
      for (let done = 0; done < handoffs; done += step) {
        const isDue = done % BETWEEN_COLLECTIONS < step;
        totalUs += await timeHandoffs(lock, waiting, step, isDue);
      }
      await locks.close();
      return { value: totalUs / handoffs };
    },
  };
}

async function timeHandoffs(
  lock: Lock,
  waiting: number,
  handoffs: number,
  collects: boolean,
): Promise<number> {
  const first = await lock.acquire();
  let turns = 0;
  let tookUs = 0;
  const tasks = Array.from({ length: waiting }, async () => {
    const lease = await lock.acquire();
    turns += 1;
    if (turns === handoffs) tookUs = cpuUs() - startUs;
    await lease.release();
  });
  await new Promise((resume) => setImmediate(resume));
  // The waiters have waited for a while: they are no young objects of the garbage collector.
  if (collects) globalThis.gc?.();
  const startUs = cpuUs();
  await first.release();
  await Promise.all(tasks);
  return tookUs;
}

/** Nothing here waits for another process: the load of the machine need not be counted. */
function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
