import { Holdfast, type Lock } from "holdfast";
import { memoryStore } from "holdfast/memory";
import type { Contestant, Question } from "../contest.js";

/** The cost of one handoff must not grow with the number of those who wait. */
export const waiters: Question = {
  store: "memory",
  name: "waiters",
  title: "one handoff, with few and with many in the queue",
  unit: "µs/handoff",
  better: "lower",
  reason: "Spread of a busy machine: the two figures lie within it.",
  rounds: 15,
  async contestants(isQuick) {
    const many = isQuick ? 2_000 : 10_000;
    return (["bounded", "strict"] as const).flatMap((fairness) => [
      contestant(`${fairness}, 10 wait`, fairness, 10),
      contestant(`${fairness}, 10,000 wait`, fairness, many),
    ]);
  },
  goals(of) {
    return ["bounded", "strict"].map((fairness) => {
      const value = of(`${fairness}, 10,000 wait`).median / of(`${fairness}, 10 wait`).median;
      return { text: `${fairness}: at most 1.5 × the cost with 10`, value, isMet: value <= 1.5 };
    });
  },
};

const HANDOFFS = 1_000;

/**
 * Fills the queue, lets it settle, then times handoffs off its head; a short queue is filled again.
 */
function contestant(name: string, fairness: "bounded" | "strict", waiting: number): Contestant {
  return {
    name,
    role: "holdfast",
    round: async () => {
      const locks = new Holdfast(memoryStore(), { fairness });
      let totalMs = 0;
      for (let done = 0; done < HANDOFFS; done += Math.min(waiting, HANDOFFS)) {
        totalMs += await timeHandoffs(locks.mutex("a"), waiting, Math.min(waiting, HANDOFFS));
      }
      await locks.close();
      return { value: (totalMs * 1000) / HANDOFFS };
    },
  };
}

async function timeHandoffs(lock: Lock, waiting: number, handoffs: number): Promise<number> {
  const first = await lock.acquire();
  let turns = 0;
  let endMs = 0;
  const tasks = Array.from({ length: waiting }, async () => {
    const lease = await lock.acquire();
    turns += 1;
    if (turns === handoffs) endMs = performance.now();
    await lease.release();
  });
  await new Promise((resume) => setImmediate(resume));
  // What waits has been waiting for a while: it is not garbage that is still being sorted out.
  if (waiting >= HANDOFFS) globalThis.gc?.();
  const startMs = performance.now();
  await first.release();
  await Promise.all(tasks);
  return endMs - startMs;
}
