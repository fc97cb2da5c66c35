import { create2, remove } from "../../src/stores/zookeeper/wire/requests.js";
import { startZookeeper, type ZookeeperServer } from "../../test/servers/zookeeper.js";
import type { Contestant, Sample } from "../contest.js";
import { type Counted, type Counters, cpuUsOf } from "../costs.js";
import type { Locker } from "../turns.js";
import { type Candidate, ownConnection } from "./candidates.js";

/** Java compiles the ways of a request only after many of them. */
const WARM_UP_PAIRS = 3_000;

/** One ZooKeeper of our own for a question. */
export class BenchZookeeper implements Counted {
  #server: ZookeeperServer | undefined;

  async start(): Promise<number> {
    this.#server = await startZookeeper({ tickMs: 2_000 });
    await warmUp(this.#server.port);
    return this.#server.port;
  }

  get address(): string {
    return `127.0.0.1:${this.#server?.port}`;
  }

  async counters(): Promise<Counters> {
    return { "server CPU µs": cpuUsOf(this.#server?.pid) };
  }

  async stop(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
  }
}

async function warmUp(port: number): Promise<void> {
  const connection = await ownConnection(port);
  const pairs = Array.from({ length: WARM_UP_PAIRS }, (_, index) => [
    connection.send(create2(`/warm-${index}`, { mode: "ephemeral" })),
    connection.send(remove(`/warm-${index}`)),
  ]);
  await Promise.all(pairs.flat());
  await connection.endSession();
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
