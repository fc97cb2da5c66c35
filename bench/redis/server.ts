import { type RedisServer, startRedis } from "../../test/servers/redis.js";
import type { Contestant, Sample } from "../contest.js";
import type { Candidate, Locker } from "./candidates.js";

/** One Redis of our own for a question, and the candidates connected to it. */
export class BenchRedis {
  #server: RedisServer | undefined;

  async start(): Promise<number> {
    this.#server = await startRedis();
    return this.#server.port;
  }

  get server(): RedisServer {
    if (!this.#server) throw new Error("the server is not started");
    return this.#server;
  }

  async stop(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
  }
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
