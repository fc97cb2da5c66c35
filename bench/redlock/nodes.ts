import { type RedisServer, startRedis } from "../../test/servers/redis.js";
import type { Counted } from "../costs.js";
import { countedRedis } from "../redis/server.js";

const NODES = 5;

/** Five independent servers of our own for a question. */
export class BenchNodes {
  #servers: RedisServer[] = [];

  async start(): Promise<readonly number[]> {
    this.#servers = await Promise.all(Array.from({ length: NODES }, () => startRedis()));
    return this.#servers.map(({ port }) => port);
  }

  /** Counts the time of these commands as well as that of scripts, over all nodes. */
  countedWith(plain: readonly string[] = []): Counted {
    return countedRedis(this.#servers, plain);
  }

  get last(): RedisServer {
    const server = this.#servers.at(-1);
    if (!server) throw new Error("the servers are not started");
    return server;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()));
    this.#servers = [];
  }
}
