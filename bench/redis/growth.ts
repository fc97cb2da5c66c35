/** How the cost of a lock grows: with names and clients, and with the processes that want one. */
import { contend, contested, startForked } from "../contention.js";
import type { Contestant, Question, Sample } from "../contest.js";
import { measured } from "../costs.js";
import { atMost } from "../goals.js";
import { type Locker, pairsOf } from "../turns.js";
import { candidate } from "./candidates.js";
import { LeaseKeepers } from "./lease-keepers.js";
import { BenchRedis } from "./server.js";

const CONTENDER = new URL("./contender.js", import.meta.url);
/** So long that no lease is renewed meanwhile. */
const TTL_MS = 3_600_000;
/** Of leases for one process. */
const MAX_OF_A_PROCESS = 250_000;
/** Servers refuse more connections than 10,000 unless told otherwise. */
const MANY_CLIENTS = ["--maxclients", "19000"];

export const names: Question = growth({
  name: "growth-names",
  title: "server time of a pair beside other names that are held",
  about:
    "As many names are held as are named, on a server of their own, by other processes; one more " +
    "name is taken and given back. Counted is the time that Redis spends in commands.",
  what: "held",
  counts: [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
  crowdOf: (count) => ({ leases: count, clients: 1 }),
});

export const clients: Question = growth({
  name: "growth-clients",
  title: "server time of a pair beside other clients",
  about:
    "As many clients as are named hold a name each, on a server of their own; one more client " +
    "takes and gives back a name. The clients are stores in up to four other processes: each has " +
    "its subscription and its connection for messages; those of one process share the connection " +
    "for their commands.",
  what: "clients",
  counts: [1, 10, 100, 1_000, 10_000],
  crowdOf: (count) => ({ leases: count, clients: count }),
});

function growth({
  what,
  counts,
  crowdOf,
  ...texts
}: Pick<Question, "name" | "title" | "about"> & {
  readonly what: string;
  readonly counts: readonly number[];
  crowdOf(count: number): { readonly leases: number; readonly clients: number };
}): Question {
  const servers: BenchRedis[] = [];
  return {
    store: "redis",
    ...texts,
    unit: "server µs/pair",
    better: "lower",
    rounds: 9,
    takesLong: true,
    async contestants(isQuick) {
      const contestants: Contestant[] = [];
      for (const count of isQuick ? counts.slice(0, -2) : counts) {
        const redis = new BenchRedis();
        servers.push(redis);
        const port = await redis.start(...MANY_CLIENTS);
        const { leases, clients } = crowdOf(count);
        const processes = clients > 100 ? 4 : Math.ceil(leases / MAX_OF_A_PROCESS);
        const keepers = await LeaseKeepers.start(
          { port, leases, clients, ttlMs: TTL_MS },
          processes,
        );
        const locker = await candidate("holdfast").open(port);
        contestants.push({
          name: `holdfast, ${count.toLocaleString("en")} ${what}`,
          role: "holdfast",
          round: () => serverTime(redis, locker, isQuick ? 200 : 1_000),
          close: async () => {
            await locker.close();
            keepers.end();
          },
        });
      }
      return contestants;
    },
    goals(_of, standings) {
      const [first, last] = [standings[0], standings.at(-1)];
      return first && last ? [atMost(1.5, "the time of the first, for the last", last, first)] : [];
    },
    async close() {
      await Promise.all(servers.splice(0).map((server) => server.stop()));
    },
  };
}

async function serverTime(redis: BenchRedis, locker: Locker, pairs: number): Promise<Sample> {
  const run = (): Promise<void> => pairsOf(locker, "one more", pairs);
  const { elapsedMs, more } = await measured(redis, pairs, run);
  const { "in commands µs/pair": value = Number.NaN, ...others } = more;
  return { value, more: { "µs/pair": (elapsedMs * 1000) / pairs, ...others } };
}

const redis = new BenchRedis();

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
            return contested(await contend(order, count, startForked(CONTENDER, order), redis));
          },
        }),
      ),
    );
  },
  goals: () => [],
  close: () => redis.stop(),
};
