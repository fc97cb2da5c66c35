import { type RedisServer, startReplication } from "../../test/servers/redis.js";
import type { Contestant, Sample } from "../contest.js";
import type { Locker } from "../turns.js";
import type { Candidate } from "./candidates.js";

/** One Redis of our own for a question, its replicas, and the candidates connected to it. */
export class BenchRedis {
  readonly #replicaCount: number;
  #server: RedisServer | undefined;
  #replicas: readonly RedisServer[] = [];

  constructor(replicaCount = 0) {
    this.#replicaCount = replicaCount;
  }

  async start(): Promise<number> {
    const { master, replicas } = await startReplication({ replicas: this.#replicaCount });
    this.#server = master;
    this.#replicas = replicas;
    return master.port;
  }

  get server(): RedisServer {
    if (!this.#server) throw new Error("the server is not started");
    return this.#server;
  }

  get address(): string {
    return `127.0.0.1:${this.server.port}`;
  }

  /** The work of the server so far: its CPU time, that of these commands, and bytes both ways. */
  async costs(commands: readonly string[]): Promise<Record<string, number>> {
    const [cpu, stats, spent] = await Promise.all([
      this.server.info("cpu"),
      this.server.info("stats"),
      this.server.info("commandstats"),
    ]);
    const cpuS = Number(cpu.used_cpu_user_main_thread) + Number(cpu.used_cpu_sys_main_thread);
    const bytes = Number(stats.total_net_input_bytes) + Number(stats.total_net_output_bytes);
    const usOf = (command: string): number =>
      Number(/usec=(\d+)/.exec(spent[`cmdstat_${command}`] ?? "")?.[1] ?? 0);
    const commandUs = commands.reduce((sum, command) => sum + usOf(command), 0);
    return { "server CPU µs": cpuS * 1e6, "in commands µs": commandUs, bytes };
  }

  /** The cost of each pair for the server, over all its commands. */
  async serverCosts(pairs: number, work: () => Promise<void>): Promise<Record<string, number>> {
    const { "in commands µs": _before, ...before } = await this.costs([]);
    await work();
    const { "in commands µs": _after, ...after } = await this.costs([]);
    return perPair(before, after, pairs);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#server, ...this.#replicas].map((server) => server?.close()));
    this.#server = undefined;
  }
}

/** The time of some pairs of acquire and release, and their cost on both sides. */
export async function measured(
  redis: BenchRedis,
  { plain = [] }: Candidate,
  pairs: number,
  run: () => Promise<void>,
): Promise<{ elapsedMs: number; more: Record<string, number> }> {
  // The time of a script has that of the commands in it.
  const commands = ["eval", "evalsha", ...plain];
  const before = await redis.costs(commands);
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  await run();
  const elapsedMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  const after = await redis.costs(commands);
  const more: Record<string, number> = { "client CPU µs/pair": (user + system) / pairs };
  return { elapsedMs, more: { ...more, ...perPair(before, after, pairs) } };
}

function perPair(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
  pairs: number,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(after).map(([key, value]) => [
      `${key}/pair`,
      (value - (before[key] ?? 0)) / pairs,
    ]),
  );
}

/** A contestant of this process that stays connected over all rounds. */
export async function connected(
  { name, role, open }: Candidate,
  port: number,
  round: (locker: Locker) => Promise<Sample>,
): Promise<Contestant> {
  const locker = await open(port);
  return { name, role, round: () => round(locker), close: () => locker.close() };
}
