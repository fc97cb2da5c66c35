import { rm } from "node:fs/promises";
import { join } from "node:path";
import { onFreePorts } from "./free-port.js";
import type { Launch } from "./owned-process.js";
import { ask, type Reply, RespClient } from "./resp.js";
import { closeAll, ServerProcess, startAll } from "./server-process.js";
import { waitUntil } from "./wait-until.js";

export interface RedisOptions {
  /** Arguments after the default ones, such as `["--appendonly", "yes"]`. */
  readonly args?: readonly string[];
  /** Environment variables, besides those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A Redis server, by default without persistence. */
export class RedisServer extends ServerProcess {
  readonly port: number;
  readonly #args: readonly string[];
  readonly #env: Readonly<Record<string, string>>;

  constructor(port: number, { args = [], env = {} }: RedisOptions = {}) {
    super("redis");
    this.port = port;
    this.#args = args;
    this.#env = env;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  protected launch(): Launch {
    const args = ["--port", `${this.port}`, "--bind", "127.0.0.1", "--dir", this.dir];
    args.push("--save", "", "--appendonly", "no", "--enable-debug-command", "local");
    // Otherwise a master waits five seconds for more replicas before the first copy.
    args.push("--repl-diskless-sync-delay", "0");
    const env = { ...process.env, ...this.#env };
    return { command: "redis-server", args: [...args, ...this.#args], env };
  }

  protected async isReady(): Promise<boolean> {
    const client = await this.client();
    try {
      if ((await client.send("PING")) !== "PONG") return false;
      return (await info(client, "server")).process_id === `${this.pid}`;
    } finally {
      await client.close();
    }
  }

  /** One command on a connection of its own; an error reply rejects with RespError. */
  ask(...args: readonly (string | number)[]): Promise<Reply> {
    return ask(this.port, ...args);
  }

  /** The server's wall clock. */
  async clockMs(): Promise<number> {
    const [seconds, micros] = (await this.ask("TIME")) as string[];
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  }

  client(): Promise<RespClient> {
    return RespClient.connect(this.port);
  }

  /** The fields of one section of INFO. */
  async info(section: string): Promise<Readonly<Record<string, string>>> {
    await using client = await this.client();
    return await info(client, section);
  }

  /** Resolves when that many clients are subscribed. */
  async untilSubscribed(clients: number): Promise<void> {
    const isSo = async (): Promise<boolean> => {
      const list = String(await this.ask("CLIENT", "LIST", "TYPE", "pubsub"));
      return (list.match(/ sub=1 /g) ?? []).length === clients;
    };
    await waitUntil(isSo, { what: `${clients} subscribed clients` });
  }

  /**
   * Starts it again on the same port. With `keepData` it has its data: a running server writes them
   * to disk first. Without, it is empty, like after a crash without persistence.
   */
  async restart({ keepData }: { readonly keepData: boolean }): Promise<void> {
    if (this.running && keepData) await this.ask("SAVE");
    await this.kill();
    if (!keepData) {
      await rm(join(this.dir, "dump.rdb"), { force: true });
      await rm(join(this.dir, "appendonlydir"), { force: true, recursive: true });
    }
    await this.start();
  }
}

export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return await onFreePorts(1, async ([port = 0]) => {
    const server = new RedisServer(port, options);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  });
}

/** Starts a replica. Resolves when it is in sync and the master counts it. */
export async function startReplica(
  master: RedisServer,
  { args = [] }: RedisOptions = {},
): Promise<RedisServer> {
  const replicaOf = ["--replicaof", "127.0.0.1", `${master.port}`];
  const replica = await startRedis({ args: [...replicaOf, ...args] });
  try {
    await untilInSync(master, replica);
    return replica;
  } catch (error) {
    await replica.close();
    throw error;
  }
}

export async function untilInSync(master: RedisServer, replica: RedisServer): Promise<void> {
  const listed = new RegExp(`port=${replica.port},state=online`);
  await waitUntil(
    async () => {
      const there = await replica.info("replication");
      if (there.master_link_status !== "up") return false;
      return Object.values(await master.info("replication")).some((line) => listed.test(line));
    },
    { what: `replica ${replica.port} in sync with ${master.port}` },
  );
}

export interface Replication extends AsyncDisposable {
  readonly master: RedisServer;
  readonly replicas: readonly RedisServer[];
}

export async function startReplication({
  replicas: count = 2,
  args = [],
}: RedisOptions & { readonly replicas?: number } = {}): Promise<Replication> {
  const master = await startRedis({ args });
  try {
    const starts = Array.from({ length: count }, () => startReplica(master, { args }));
    const replicas = await startAll(starts);
    const close = () => closeAll([master, ...replicas]);
    // A replica in sync sends its first acknowledgement after up to a second.
    await master.ask("PUBLISH", "replication", "begins");
    const answered = async (): Promise<boolean> => {
      const lines = Object.values(await master.info("replication"));
      return lines.filter((line) => /state=online,offset=[1-9]/.test(line)).length === count;
    };
    await waitUntil(answered, { what: `the ${count} replicas answer` });
    return { master, replicas, [Symbol.asyncDispose]: close };
  } catch (error) {
    await master.close();
    throw error;
  }
}

async function info(client: RespClient, section: string): Promise<Record<string, string>> {
  const lines = String(await client.send("INFO", section)).split("\r\n");
  return Object.fromEntries(
    lines.filter((line) => line.includes(":")).map((line) => line.split(/:(.*)/s, 2)),
  );
}
