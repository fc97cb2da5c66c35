import { type RedisServer, startReplication } from "../../test/servers/redis.js";
import type { Contestant, Sample } from "../contest.js";
import { type Counted, type Counters, sumOf } from "../costs.js";
import type { Locker } from "../turns.js";
import type { Candidate } from "./candidates.js";

/** One Redis of our own for a question, its replicas, and the candidates connected to it. */
export class BenchRedis implements Counted {
  readonly #replicaCount: number;
  #server: RedisServer | undefined;
  #replicas: readonly RedisServer[] = [];

  constructor(replicaCount = 0) {
    this.#replicaCount = replicaCount;
  }

  async start(...args: readonly string[]): Promise<number> {
    const { master, replicas } = await startReplication({ replicas: this.#replicaCount, args });
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

  counters(): Promise<Counters> {
    return this.countedWith([]).counters();
  }

  /** Counts the time of these commands as well as that of scripts. */
  countedWith(plain: readonly string[] = []): Counted {
    return countedRedis([this.server], plain);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#server, ...this.#replicas].map((server) => server?.close()));
    this.#server = undefined;
  }
}

/** Several servers in sum, with the time of scripts and of these commands. */
export function countedRedis(
  servers: readonly RedisServer[],
  plain: readonly string[] = [],
): Counted {
  const ofAll = () => Promise.all(servers.map((server) => countersOf(server, plain)));
  return { counters: async () => sumOf(await ofAll()) };
}

/** The work of a server so far. The time of a script has that of the commands in it. */
async function countersOf(server: RedisServer, plain: readonly string[]): Promise<Counters> {
  const all = await server.info("all");
  const field = (name: string): number => Number(all[name]);
  const usOf = (command: string): number =>
    Number(/usec=(\d+)/.exec(all[`cmdstat_${command}`] ?? "")?.[1] ?? 0);
  const cpuS = field("used_cpu_user_main_thread") + field("used_cpu_sys_main_thread");
  return {
    "server CPU µs": cpuS * 1e6,
    "in commands µs": ["eval", "evalsha", ...plain].reduce((sum, name) => sum + usOf(name), 0),
    bytes: field("total_net_input_bytes") + field("total_net_output_bytes"),
  };
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
