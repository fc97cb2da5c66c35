import { childrenOf, type PostgresServer, startPostgres } from "../../test/servers/postgres.js";
import type { Contestant, Sample } from "../contest.js";
import { type Counted, type Counters, cpuUsOf, cpuUsOfChildren } from "../costs.js";
import type { Locker } from "../turns.js";
import type { Candidate } from "./candidates.js";

/** Whether a commit waits until the disk has it. */
export type Durability = "on" | "off";

/** One Postgres of our own for a question. */
export class BenchPostgres implements Counted {
  readonly #durability: Durability;
  #server: PostgresServer | undefined;

  constructor(durability: Durability) {
    this.#durability = durability;
  }

  async start(): Promise<string> {
    this.#server = await startPostgres({
      settings: { synchronous_commit: this.#durability, max_connections: "200" },
      isOnDisk: true,
    });
    // For the raw statements.
    await this.#server.ask("create table raw (name text primary key, owner text, expiry bigint)");
    return this.#server.url;
  }

  /** The processor time of the server with all its connections, also of those that have ended. */
  async counters(): Promise<Counters> {
    const pid = this.#server?.pid ?? 0;
    const running = [pid, ...childrenOf(pid)].map(cpuUsOf);
    const sum = running.reduce((total, cpuUs) => total + cpuUs, cpuUsOfChildren(pid));
    return { "server CPU µs": sum };
  }

  async stop(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
  }
}

/** A contestant of this process that stays connected over all rounds. */
export async function connected(
  { name, role, open }: Candidate,
  url: string,
  round: (locker: Locker) => Promise<Sample>,
): Promise<Contestant> {
  const locker = await open(url);
  return { name, role, round: () => round(locker), close: () => locker.close() };
}
