import { once, setMaxListeners } from "node:events";
import { Holdfast } from "holdfast";
import { redisStore } from "holdfast/redis";
import { Redis } from "ioredis";
import type { Contestant, Question, Sample } from "../contest.js";
import { measured } from "../costs.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();

export const waiters: Question = {
  store: "redis",
  name: "waiters",
  title: "one handoff, with few and with many in the queue",
  about: "The cost of one handoff must not grow with the number of waiters.",
  unit: "µs/handoff",
  better: "lower",
  rounds: 7,
  async contestants(isQuick) {
    const port = await redis.start();
    const counts = isQuick ? [10, 1_000] : [10, 100, 1_000, 10_000];
    return counts.map((count) =>
      contestant(`strict, ${count.toLocaleString("en")} wait`, port, count, isQuick ? 100 : 500),
    );
  },
  goals(_, standings) {
    const few = standings[0]?.median ?? Number.NaN;
    const value = (standings.at(-1)?.median ?? Number.NaN) / few;
    const text = "at most 1.5 × the cost with 10";
    return [{ text, value, isMet: value <= 1.5 }];
  },
  close: () => redis.stop(),
};

function contestant(name: string, port: number, waiting: number, handoffs: number): Contestant {
  return {
    name,
    role: "holdfast",
    round: async () => {
      const client = new Redis(port);
      const locks = new Holdfast(redisStore({ client }), { fairness: "strict" });
      const samples: Sample[] = [];
      const step = Math.min(waiting, handoffs);
      for (let done = 0; done < handoffs; done += step) {
        samples.push(await timeHandoffs(locks, `${name}:${done}`, waiting, step));
      }
      await locks.close();
      client.disconnect();
      return averageOf(samples);
    },
  };
}

async function timeHandoffs(
  locks: Holdfast,
  name: string,
  waiting: number,
  handoffs: number,
): Promise<Sample> {
  const lock = locks.mutex(name);
  const first = await lock.acquire();
  const leave = new AbortController();
  setMaxListeners(0, leave.signal);
  let turns = 0;
  let onLast = (): void => {};
  const last = new Promise<void>((resume) => {
    onLast = resume;
  });
  const left = once(leave.signal, "abort");
  const tasks = Array.from({ length: waiting }, async () => {
    try {
      const lease = await lock.acquire({ signal: leave.signal });
      turns += 1;
      if (turns === handoffs) {
        onLast();
        await left;
      }
      await lease.release();
    } catch {
      // The rest of the queue is not needed any more.
    }
  });
  while ((await locks.inspect(name)).waiters.length < waiting) {
    await new Promise((resume) => setTimeout(resume, 20));
  }
  globalThis.gc?.();
  const handOver = async (): Promise<void> => {
    await Promise.all([first.release(), last]);
  };
  const { elapsedMs, more } = await measured(redis, handoffs, handOver, "handoff");
  leave.abort();
  await Promise.all(tasks);
  // The server's CPU time would have much of the counting itself: handoffs are few.
  const { "server CPU µs/handoff": _, ...costs } = more;
  return { value: (elapsedMs * 1000) / handoffs, more: costs };
}

function averageOf(samples: readonly Sample[]): Sample {
  const average = (figureOf: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + figureOf(sample), 0) / samples.length;
  const keys = Object.keys(samples[0]?.more ?? {});
  return {
    value: average(({ value }) => value),
    more: Object.fromEntries(keys.map((key) => [key, average(({ more }) => more?.[key] ?? 0)])),
  };
}
