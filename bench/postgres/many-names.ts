import { bestOf, type Contestant, type Question } from "../contest.js";
import { measured } from "../costs.js";
import { atLeast } from "../goals.js";
import { pairsAtOnce, pairsOf } from "../turns.js";
import { candidatesFor, RAW } from "./candidates.js";
import { BenchPostgres, connected } from "./server.js";

const postgres = new BenchPostgres("on");
const TASKS = 100;
const SEQUENTIAL = `${RAW}, one after the other`;

export const manyNames: Question = {
  store: "postgres",
  name: "many-names",
  title: "100 concurrent tasks on distinct names",
  about:
    "A hundred tasks, a name each: what batching gives. The raw pair runs one after the other on " +
    "its one connection, with or without a wait between the statements.",
  unit: "pairs/s",
  better: "higher",
  rounds: 15,
  async contestants(isQuick) {
    const pairsPerTask = isQuick ? 3 : 10;
    const url = await postgres.start();
    const rate = async (pairs: number, run: () => Promise<void>) => {
      const { elapsedMs, more } = await measured(postgres, pairs, run);
      return { value: (pairs * 1000) / elapsedMs, more };
    };
    const all = candidatesFor(isQuick).filter(({ connectsPerLock }) => !connectsPerLock);
    const atOnce = all.map((candidate) =>
      connected(candidate, url, (locker) =>
        rate(TASKS * pairsPerTask, () => pairsAtOnce(locker, candidate.name, TASKS, pairsPerTask)),
      ),
    );
    const raw = all.filter(({ name }) => name === RAW);
    const inTurn = raw.map(async (candidate): Promise<Contestant> => {
      const pairs = isQuick ? 100 : 300;
      const contestant = await connected(candidate, url, (locker) =>
        rate(pairs, () => pairsOf(locker, SEQUENTIAL, pairs)),
      );
      return { ...contestant, name: SEQUENTIAL };
    });
    return Promise.all([...atOnce, ...inTurn]);
  },
  goals(of, standings) {
    const ours = of("holdfast");
    return [
      atLeast(12, "the rate of one named insert and delete after the other", ours, of(SEQUENTIAL)),
      atLeast(2.5, "the best peer's rate", ours, bestOf("peer", "higher", standings)),
    ];
  },
  close: () => postgres.stop(),
};
