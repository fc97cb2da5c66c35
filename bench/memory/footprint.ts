import { createRequire } from "node:module";
import type * as asyncMutex from "async-mutex";
import { Holdfast, type Lease } from "holdfast";
import { memoryStore } from "holdfast/memory";
import type { Contestant, Question, Sample } from "../contest.js";
import { heapBytes } from "../costs.js";

const { Mutex }: typeof asyncMutex = createRequire(import.meta.url)("async-mutex");

/** No contestant has a function of its own around its calls: that would be counted, too. */
interface Calls<Held> {
  acquire(name: string): Promise<Held>;
  release(held: Held): unknown;
}

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
          const mutexes = new Map<string, asyncMutex.Mutex>();
          const acquire = (name: string): Promise<() => void> => {
            const mutex = mutexes.get(name) ?? new Mutex();
            mutexes.set(name, mutex);
            return mutex.acquire();
          };
          return await measure({ acquire, release: (release) => release() }, count);
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
      const acquire = (lock: string): Promise<Lease> => locks.mutex(lock).acquire();
      return await measure({ acquire, release: (lease) => lease.release() }, count);
    },
  };
}

async function measure<Held>({ acquire, release }: Calls<Held>, count: number): Promise<Sample> {
  const first = await acquire("waited for");
  const beforeWaiting = heapBytes();
  const turns = Array.from({ length: count }, async () => {
    await release(await acquire("waited for"));
  });
  await new Promise((resume) => setImmediate(resume));
  const value = (heapBytes() - beforeWaiting) / count;
  await release(first);
  await Promise.all(turns);
  const beforeHeld = heapBytes();
  const names = Array.from({ length: count }, (_, index) => `held:${index}`);
  const held = await Promise.all(names.map(acquire));
  const more = { "bytes/lease held": (heapBytes() - beforeHeld) / count };
  for (const one of held) await release(one);
  return { value, more };
}
