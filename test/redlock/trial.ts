import { Redis } from "ioredis";
import { Holdfast } from "../../src/api/holdfast.js";
import type { AcquireOptions } from "../../src/options/options.js";
import { type RedlockStoreOptions, redlockStore } from "../../src/stores/redlock/index.js";
import type { FaultProxy } from "../faults/proxy.js";
import { startProxies } from "../redis/faults.js";
import { type RedisOptions, type RedisServer, startRedis } from "../servers/redis.js";
import { closeAll, startAll } from "../servers/server-process.js";

export interface RedlockParty {
  readonly locks: Holdfast;
  readonly clients: readonly Redis[];
  /** The proxies between this client and the nodes; empty by default. */
  readonly proxies: readonly FaultProxy[];
}

/** Nodes and clients; all of them end with the trial. */
export class RedlockTrial implements AsyncDisposable {
  readonly servers: readonly RedisServer[];
  readonly #ends: (() => unknown)[] = [];

  constructor(servers: readonly RedisServer[]) {
    this.servers = servers;
  }

  static async start(
    nodes: number,
    options: (at: number) => RedisOptions = () => ({}),
  ): Promise<RedlockTrial> {
    const starts = Array.from({ length: nodes }, (_, at) => startRedis(options(at)));
    return new RedlockTrial(await startAll(starts));
  }

  get names(): string[] {
    return this.servers.map((_, at) => `n${at}`);
  }

  server(at: number): RedisServer {
    const server = this.servers[at];
    if (!server) throw new Error(`there is no node ${at}`);
    return server;
  }

  /** Opens a client: directly, or through a proxy for each node. */
  async open(
    given: Partial<RedlockStoreOptions> & {
      readonly proxied?: boolean;
      readonly defaults?: AcquireOptions;
    } = {},
  ): Promise<RedlockParty> {
    const { proxied = false, defaults = {}, ...options } = given;
    const proxies = proxied ? await startProxies(this.servers) : [];
    const clients = this.servers.map(({ port }, at) => {
      const client = new Redis(proxies[at]?.port ?? port, "127.0.0.1");
      client.on("error", () => {});
      return client;
    });
    const known = { clients, nodeNames: this.names, bootstrap: "now" } as const;
    const locks = new Holdfast(redlockStore({ ...known, ...options }), defaults);
    this.#ends.push(async () => {
      await locks.close();
      for (const client of clients) client.disconnect();
      await closeAll(proxies);
    });
    return { locks, clients, proxies };
  }

  /** The value of a lock's plain key at each node. */
  async values(name: string): Promise<(string | null)[]> {
    const asked = this.servers.map((server) => server.ask("GET", name) as Promise<string | null>);
    return await Promise.all(asked);
  }

  /** Removes all data of the nodes, for the next test on them. */
  async empty(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.ask("FLUSHALL")));
  }

  /** Closes what `open` has opened. */
  async closeParties(): Promise<void> {
    await Promise.all(this.#ends.splice(0).map((end) => end()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.closeParties();
    await closeAll(this.servers);
  }
}
