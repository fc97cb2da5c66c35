import { type Question, quantile, type Sample } from "../contest.js";
import { counted } from "../costs.js";
import { candidate } from "./candidates.js";
import { LeaseKeepers } from "./lease-keepers.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const PROCESSES = 4;
const FULL = { leases: 1_000_000, ttlMs: 120_000, holdMs: 300_000 };
const QUICK = { leases: 100_000, ttlMs: 30_000, holdMs: 30_000 };
/** Another client takes and gives back a lock so often meanwhile. */
const PROBE_EVERY_MS = 20;

export const millionLeases: Question = {
  store: "redis",
  name: "million-leases",
  title: "a million leases held by four processes for five minutes",
  about:
    "Each of four processes keeps a quarter of the leases, with a ttl of 120 s; a quick look has " +
    "100,000 leases with a ttl of 30 s. The server's part of a core is its whole work: renewals, " +
    "and a client that takes and gives back one more lock now and then, whose times are told.",
  unit: "% of a core, server",
  better: "lower",
  rounds: 1,
  startsFresh: true,
  takesLong: true,
  isOnDemand: true,
  contestants: async (isQuick) => [
    { name: "holdfast", role: "holdfast", round: () => hold(isQuick ? QUICK : FULL) },
  ],
  goals(of) {
    const { median, more } = of("holdfast");
    const under = (most: number, key: string, text: string) => {
      const value = more[key] ?? Number.NaN;
      return { text, value, isMet: value <= most };
    };
    return [
      under(0, "lost", "leases lost"),
      { text: "server at most 35 % of a core", value: median, isMet: median <= 35 },
      under(1_500, "client bytes/lease", "client memory at most 1,500 bytes a lease"),
      under(50, "loop delay p99 ms", "event-loop delay p99 at most 50 ms"),
    ];
  },
  close: () => redis.stop(),
};

async function hold({ leases, ttlMs, holdMs }: typeof FULL): Promise<Sample> {
  const port = await redis.start();
  const bytesBefore = await memoryOf();
  const startMs = performance.now();
  const keepers = await LeaseKeepers.start({ port, leases, ttlMs, clients: PROCESSES }, PROCESSES);
  try {
    const fillS = (performance.now() - startMs) / 1000;
    const serverBytes = (await memoryOf()) - bytesBefore;
    keepers.watch();
    const callsBefore = await scriptCalls();
    const [pairsMs, spent] = await counted(redis, () => probe(port, holdMs));
    const calls = (await scriptCalls()) - callsBefore - 2 * pairsMs.length;
    const reports = await keepers.reports();
    const sum = (key: "lost" | "heapBytes" | "cpuUs"): number =>
      reports.reduce((all, report) => all + report[key], 0);
    const ofCore = (us: number): number => us / (holdMs * 10);
    return {
      value: ofCore(spent["server CPU µs"] ?? Number.NaN),
      more: {
        lost: sum("lost"),
        "in commands, % of a core": ofCore(spent["in commands µs"] ?? Number.NaN),
        "µs/renewal call": (spent["in commands µs"] ?? Number.NaN) / calls,
        "renewal calls/s": (calls * 1000) / holdMs,
        "clients, % of a core": ofCore(sum("cpuUs")),
        "client bytes/lease": sum("heapBytes") / leases,
        "server bytes/lease": serverBytes / leases,
        "loop delay p99 ms": Math.max(...reports.map(({ delayP99Ms }) => delayP99Ms)),
        "other pair p50 ms": quantile(pairsMs, 0.5),
        "other pair p99 ms": quantile(pairsMs, 0.99),
        "leases/s at the start": leases / fillS,
      },
    };
  } finally {
    keepers.end();
  }
}

/** How long each pair of one more client takes. */
async function probe(port: number, forMs: number): Promise<number[]> {
  const locker = await candidate("holdfast").open(port);
  const tookMs: number[] = [];
  for (const untilMs = performance.now() + forMs; performance.now() < untilMs; ) {
    await new Promise((resume) => setTimeout(resume, PROBE_EVERY_MS));
    const startMs = performance.now();
    const release = await locker.acquire("probe");
    await release();
    tookMs.push(performance.now() - startMs);
  }
  await locker.close();
  return tookMs;
}

async function memoryOf(): Promise<number> {
  const { used_memory, mem_clients_normal } = await redis.server.info("memory");
  return Number(used_memory) - Number(mem_clients_normal);
}

async function scriptCalls(): Promise<number> {
  const { cmdstat_evalsha: stats = "" } = await redis.server.info("commandstats");
  return Number(/calls=(\d+)/.exec(stats)?.[1]);
}
