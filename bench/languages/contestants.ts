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
const BY_STORE: Readonly<Record<"redis" | "etcd", readonly Foreign[]>> = {
  redis: [
    { language: "Go", candidate: "raw", name: "raw (Go)" },
    { language: "Go", candidate: "redsync", name: "redsync (Go)" },
    { language: "Go", candidate: "redislock", name: "bsm/redislock (Go)" },
    { language: "Go", candidate: "rueidislock", name: "rueidislock (Go)" },
    { language: "Java", candidate: "raw", name: "raw (Java)" },
    { language: "Java", candidate: "RLock", name: "Redisson RLock (Java)" },
    { language: "Java", candidate: "RFairLock", name: "Redisson RFairLock (Java)" },
    { language: "Python", candidate: "raw", name: "raw (Python)" },
    { language: "Python", candidate: "redis-py", name: "redis-py (Python)" },
  ],
  etcd: [
    { language: "Go", candidate: "etcd raw", name: "raw (Go)" },
    { language: "Go", candidate: "etcd", name: "concurrency.Mutex (Go)" },
  ],
};

/** The servers of the question, which count the time of these commands as well. */
type Servers = (plain?: readonly string[]) => Counted;

interface PairsTerms {
  readonly store: "redis" | "etcd";
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
  const found = await available(store);
  return Promise.all(
    found.map(async ({ candidate, name, language, command, plain }): Promise<Contestant> => {
      const process = await ForeignProcess.start(command, candidate, address);
      const round = async (): Promise<Sample> => {
        const all = terms.tasks * terms.pairs;
        const [{ elapsedMs, cpuUs }, spent] = await counted(servers(plain), () =>
          process.order({ do: "pairs", lock: name, ...terms }),
        );
        const more = each({ "client CPU µs": cpuUs, ...spent }, all, "pair");
        return { value: figureOf(elapsedMs, all), more };
      };
      const close = async (): Promise<void> => process.kill();
      return { name, ...roleOf(candidate, language), round, close };
    }),
  );
}

/** Contestants that contend for one name, in processes of their own for every round. */
export async function foreignTurns(
  address: string,
  turns: Omit<Turns, "lock">,
  processes: number,
  servers: Servers,
  sampleOf: (contention: Contention) => Sample,
): Promise<readonly Contestant[]> {
  const found = await available("redis");
  return found
    .filter(({ candidate }) => candidate !== "raw")
    .map(({ candidate, name, language, command, plain }): Contestant => {
      const start = async (): Promise<Contender> => {
        const process = await ForeignProcess.start(command, candidate, address);
        return {
          run: () => process.order({ do: "turns", lock: name, ...turns }),
          kill: () => process.kill(),
        };
      };
      return {
        name,
        ...roleOf(candidate, language),
        round: async () => sampleOf(await contend(turns, processes, start, servers(plain))),
      };
    });
}

/** Those whose toolchain is there; the reason why the others are left out is printed. */
async function available(
  store: "redis" | "etcd",
): Promise<readonly (Foreign & { readonly command: readonly string[] })[]> {
  const found = [];
  const told = new Set<Language>();
  for (const foreign of BY_STORE[store]) {
    const toolchain = await toolchainOf(foreign.language);
    if (toolchain.type === "ready") found.push({ ...foreign, command: toolchain.command });
    else if (!told.has(foreign.language)) {
      told.add(foreign.language);
      process.stdout.write(`Without ${foreign.language}: ${toolchain.reason}\n`);
    }
  }
  return found;
}

function roleOf(candidate: string, language: Language): Pick<Contestant, "role" | "floor"> {
  return {
    role: candidate.endsWith("raw") ? "foreign floor" : "foreign",
    floor: `raw (${language})`,
  };
}
