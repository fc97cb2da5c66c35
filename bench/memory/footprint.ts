import { Mutex } from "async-mutex";
import { Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";
import type { Contestant, Question, Sample } from "../contest.js";
import { heapBytes } from "../heap.js";

type Acquire = (name: string) => Promise<() => unknown>;

export const footprint: Question = {
  store: "memory",
  name: "footprint",
  title: "memory for each task that waits, and for each lease that is held",
  about: "How much of the heap a held lease and a waiter take.",
  unit: "bytes/waiter",
  better: "lower",
  rounds: 5,
  async contestants(isQuick) {
    const count = isQuick ? 1_000 : 10_000;
    return [
      contestant("holdfast", "bounded", count),
      contestant("holdfast strict", "strict", count),
      {
        name: "async-mutex",
        role: "peer",
        round: async () => {
          const mutexes = new Map<string, Mutex>();
          return await measure((name) => {
            const mutex = mutexes.get(name) ?? new Mutex();
            mutexes.set(name, mutex);
            return mutex.acquire();
          }, count);
        },
      },
    ];
  },
  goals: () => [],
};

function contestant(name: string, fairness: "bounded" | "strict", count: number): Contestant {
  return {
    name,
    role: "holdfast",
    round: async () => {
      await using locks = new Holdfast(memoryStore(), { fairness });
      return await measure(async (lock) => {
        const lease = await locks.mutex(lock).acquire();
        return () => lease.release();
      }, count);
    },
  };
}

async function measure(acquire: Acquire, count: number): Promise<Sample> {
  const first = await acquire("waited for");
  const beforeWaiting = heapBytes();
  const turns = Array.from({ length: count }, async () => {
    const release = await acquire("waited for");
    await release();
  });
  await new Promise((resume) => setImmediate(resume));
  const value = (heapBytes() - beforeWaiting) / count;
  await first();
  await Promise.all(turns);
  const beforeHeld = heapBytes();
  const names = Array.from({ length: count }, (_, index) => `held:${index}`);
  const held = await Promise.all(names.map(acquire));
  const more = { "bytes/lease held": (heapBytes() - beforeHeld) / count };
  for (const release of held) await release();
  return { value, more };
}
