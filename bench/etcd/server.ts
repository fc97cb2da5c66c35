import { type EtcdServer, startEtcd } from "../../test/servers/etcd.js";
import type { Contestant, Sample } from "../contest.js";
import { type Counted, type Counters, cpuUsOf } from "../costs.js";
import type { Locker } from "../turns.js";
import type { Candidate } from "./candidates.js";

/** One etcd of our own for a question. */
export class BenchEtcd implements Counted {
  #server: EtcdServer | undefined;

  async start(): Promise<string> {
    this.#server = await startEtcd();
    return this.#server.url;
  }

  get address(): string {
    return new URL(this.#server?.url ?? "").host;
  }

  /** How many messages it has got so far: calls, and what is written into streams. */
  requests(): Promise<number> {
    return this.#sum("grpc_server_msg_received_total{");
  }

  /** How many keys it has, and how many leases of its own. */
  async contents(): Promise<readonly [keys: number, leases: number]> {
    const [granted, revoked, expired] = await Promise.all([
      this.#sum("etcd_debugging_lease_granted_total "),
      this.#sum("etcd_debugging_lease_revoked_total "),
      this.#sum("etcd_debugging_server_lease_expired_total "),
    ]);
    const keys = await this.#sum("etcd_debugging_mvcc_keys_total ");
    return [keys, granted - Math.max(revoked, expired)];
  }

  async #sum(metric: string): Promise<number> {
    const reply = await fetch(`${this.#server?.url}/metrics`);
    const lines = (await reply.text()).split("\n");
    const found = lines.filter((line) => line.startsWith(metric));
    return found.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }

  async counters(): Promise<Counters> {
    return { "server CPU µs": cpuUsOf(this.#server?.pid), requests: await this.requests() };
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
