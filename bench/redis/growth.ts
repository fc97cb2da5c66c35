/** How the cost of a lock grows: with the names in use, and with the processes that want one. */

import { contend, contested, startForked } from "../contention.js";
import type { Contestant, Question } from "../contest.js";
import { candidate } from "./candidates.js";
import { BenchRedis, connected, measured } from "./server.js";

const redis = new BenchRedis();
const CONTENDER = new URL("./contender.js", import.meta.url);

export const names: Question = {
  store: "redis",
  name: "growth-names",
  title: "acquire and release beside other names that are held",
  about: "As many names are held as are named, while one more is taken and given back.",
  unit: "µs/pair",
  better: "lower",
  rounds: 7,
  takesLong: true,
  async contestants(isQuick) {
    const port = await redis.start();
    const pairs = isQuick ? 200 : 1_000;
    const counts = isQuick ? [1, 1_000] : [1, 10, 100, 1_000, 10_000, 100_000];
    return Promise.all(
      counts.map(async (count): Promise<Contestant> => {
        const name = `holdfast, ${count.toLocaleString("en")} held`;
        const contestant = await connected(candidate("holdfast"), port, async (locker) => {
          const held = await Promise.all(
            Array.from({ length: count }, (_, index) => locker.acquire(`${count}:${index}`)),
          );
          const { elapsedMs, more } = await measured(
            redis,
            candidate("holdfast"),
            pairs,
            async () => {
              for (let pair = 0; pair < pairs; pair += 1) {
                const release = await locker.acquire(`${count}:one more`);
                await release();
              }
            },
          );
          await Promise.all(held.map((release) => release()));
          return { value: (elapsedMs * 1000) / pairs, more };
        });
        return { ...contestant, name };
      }),
    );
  },
  goals: () => [],
  close: () => redis.stop(),
};

export const processes: Question = {
  store: "redis",
  name: "growth-processes",
  title: "more and more processes with 10 workers each on one name",
  about:
    "The same contention in 1 to 8 processes, turns of a process together and in strict order.",
  unit: "grants/s",
  better: "higher",
  rounds: 3,
  startsFresh: true,
  takesLong: true,
  async contestants(isQuick) {
    const port = await redis.start();
    const forMs = isQuick ? 150 : 2_000;
    const counts = isQuick ? [1, 2] : [1, 2, 4, 8];
    return ["holdfast", "holdfast strict"].flatMap((name) =>
      counts.map(
        (count): Contestant => ({
          name: `${name}, ${count}`,
          role: "holdfast",
          round: async () => {
            const order = { candidate: name, port, lock: name, workers: 10, forMs, holdMs: [] };
            return contested(await contend(order, count, startForked(CONTENDER, order)));
          },
        }),
      ),
    );
  },
  goals: () => [],
  close: () => redis.stop(),
};
