import type { Question } from "../contest.js";
import { measured } from "../costs.js";
import { atMost } from "../goals.js";
import { pairsOf } from "../turns.js";
import { candidatesFor, RAW } from "./candidates.js";
import { BenchPostgres, connected, type Durability } from "./server.js";

/** One task, one name, with or without the wait for the disk. */
function question(name: string, durability: Durability, most: number): Question {
  const postgres = new BenchPostgres(durability);
  return {
    store: "postgres",
    name,
    title: `acquire and release, one at a time, synchronous_commit ${durability}`,
    about:
      "One task, one name: what a lock costs when nobody is in the way" +
      (durability === "on"
        ? ". Two commits, each of which waits for the disk, but for the release of holdfast."
        : ", on a server whose commits do not wait for the disk."),
    unit: "µs/pair",
    better: "lower",
    reason:
      "A function of the database locks and judges the row, keeps its token and answers with " +
      "times, where the floor has two plain statements: that takes the server half as much " +
      "processor time again. About as much is the client's: options, lease, keeper, batch and " +
      "codec, which run cold after each answer.",
    rounds: 15,
    async contestants(isQuick) {
      const pairs = isQuick ? 100 : 300;
      const url = await postgres.start();
      return Promise.all(
        candidatesFor(isQuick).map((candidate) =>
          connected(candidate, url, async (locker) => {
            const run = (): Promise<void> => pairsOf(locker, candidate.name, pairs);
            const { elapsedMs, more } = await measured(postgres, pairs, run);
            return { value: (elapsedMs * 1000) / pairs, more };
          }),
        ),
      );
    },
    goals(of) {
      const ours = of("holdfast");
      return [
        atMost(most, "the time of a named insert and delete", ours, of(RAW)),
        atMost(0.55, "verrou's time", ours, of("verrou (knex)")),
      ];
    },
    close: () => postgres.stop(),
  };
}

export const uncontended: Question = question("uncontended", "on", 1.25);
export const uncontendedRelaxed: Question = question("uncontended-relaxed", "off", 1.4);
