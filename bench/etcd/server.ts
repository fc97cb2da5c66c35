import { type EtcdServer, startEtcd } from "../../test/servers/etcd.js";
import type { Contestant, Sample } from "../contest.js";
import type { Candidate, Locker } from "./candidates.js";

/** One etcd of our own for a question. */
export class BenchEtcd {
  #server: EtcdServer | undefined;

  async start(): Promise<string> {
    this.#server = await startEtcd();
    return this.#server.url;
  }

  /** How many messages it has got so far: calls, and what is written into streams. */
  async requests(): Promise<number> {
    const reply = await fetch(`${this.#server?.url}/metrics`);
    const lines = (await reply.text()).split("\n");
    const received = lines.filter((line) => line.startsWith("grpc_server_msg_received_total{"));
    return received.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
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
