import { type Contender, type Contention, contend } from "../contention.js";
import type { Contestant, Sample } from "../contest.js";
import { type Counted, counted, each } from "../costs.js";
import type { Turns } from "../turns.js";
import { ForeignProcess } from "./foreign-process.js";
import { type Language, toolchainOf } from "./toolchain.js";

interface Foreign {
  readonly language: Language;
  /** As its program calls it. */
  readonly candidate: string;
  readonly name: string;
  /** The commands it sends beside scripts, by their names in INFO commandstats. */
  readonly plain?: readonly string[];
}

/** The raw commands of each language first: its locks are compared with them. */
const BY_STORE: Readonly<Record<"redis" | "etcd" | "zookeeper", readonly Foreign[]>> = {
  redis: [
    { language: "Go", candidate: "raw", name: "raw (Go)", plain: ["set"] },
    { language: "Go", candidate: "redsync", name: "redsync (Go)", plain: ["set"] },
    { language: "Go", candidate: "redislock", name: "bsm/redislock (Go)" },
    { language: "Go", candidate: "rueidislock", name: "rueidislock (Go)" },
    { language: "Java", candidate: "raw", name: "raw (Java)", plain: ["set"] },
    { language: "Java", candidate: "RLock", name: "Redisson RLock (Java)" },
    { language: "Java", candidate: "RFairLock", name: "Redisson RFairLock (Java)" },
    { language: "Python", candidate: "raw", name: "raw (Python)", plain: ["set"] },
    { language: "Python", candidate: "redis-py", name: "redis-py (Python)", plain: ["set"] },
  ],
  etcd: [
    { language: "Go", candidate: "etcd raw", name: "raw (Go)" },
    { language: "Go", candidate: "etcd", name: "concurrency.Mutex (Go)" },
  ],
  zookeeper: [
    { language: "Java", candidate: "zookeeper raw", name: "raw (Java)" },
    { language: "Java", candidate: "InterProcessMutex", name: "Curator (Java)" },
    { language: "Python", candidate: "zookeeper raw", name: "raw (Python)" },
    { language: "Python", candidate: "kazoo", name: "kazoo (Python)" },
  ],
};

/** The servers of the question, which count the time of these commands as well. */
type Servers = (plain?: readonly string[]) => Counted;

interface PairsTerms {
  readonly store: keyof typeof BY_STORE;
  readonly address: string;
  readonly tasks: number;
  /** Of each task. */
  readonly pairs: number;
  readonly figureOf: (elapsedMs: number, pairs: number) => number;
  readonly servers: Servers;
}

/** Contestants that do pairs of acquire and release; each process lives for all rounds. */
export async function foreignPairs({
  store,
  address,
  figureOf,
  servers,
  ...terms
}: PairsTerms): Promise<readonly Contestant[]> {
  const entered = BY_STORE[store].map((foreign) =>
    enter(foreign, async (command) => {
      const { candidate, name, plain } = foreign;
      const process = await ForeignProcess.start(command, candidate, address);
      const round = async (): Promise<Sample> => {
        const all = terms.tasks * terms.pairs;
        const [{ elapsedMs, cpuUs }, spent] = await counted(servers(plain), () =>
          process.order({ do: "pairs", lock: name, ...terms }),
        );
        const more = each({ "client CPU µs": cpuUs, ...spent }, all, "pair");
        return { value: figureOf(elapsedMs, all), more };
      };
      return { round, close: async () => process.kill() };
    }),
  );
  return await Promise.all(entered);
}

/** Contestants that contend for one name, in processes of their own forevery round. */
export async function foreignTurns(
  address: string,
  turns: Omit<Turns, "lock">,
  processes: number,
  servers: Servers,
  sampleOf: (contention: Contention) => Sample,
): Promise<readonly Contestant[]> {
  const entered = BY_STORE.redis
    .filter(({ candidate }) => candidate !== "raw")
    .map((foreign) =>
      enter(foreign, async (command) => {
        const { candidate, name, plain } = foreign;
        const start = async (): Promise<Contender> => {
          const process = await ForeignProcess.start(command, candidate, address);
          return {
            run: () => process.order({ do: "turns", lock: name, ...turns }),
            kill: () => process.kill(),
          };
        };
        const contention = () => contend(turns, processes, start, servers(plain));
        return { round: async () => sampleOf(await contention()) };
      }),
    );
  return await Promise.all(entered);
}

/** A contestant whose language is built, or one that says why it is not. */
async function enter(
  { language, candidate, name }: Foreign,
  open: (command: readonly string[]) => Promise<Pick<Contestant, "round" | "close">>,
): Promise<Contestant> {
  const entry = {
    name,
    role: candidate.endsWith("raw") ? "foreign floor" : "foreign",
    floor: `raw (${language})`,
  } as const;
  const toolchain = await toolchainOf(language);
  if (toolchain.type === "ready") return { ...entry, ...(await open(toolchain.command)) };
  const { reason } = toolchain;
  return { ...entry, skipped: reason, round: () => Promise.reject(new Error(reason)) };
}
