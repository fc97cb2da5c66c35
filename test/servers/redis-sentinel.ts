import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onFreePorts } from "./free-port.js";
import type { Launch } from "./owned-process.js";
import { isStopped } from "./process-state.js";
import { type RedisServer, startReplication } from "./redis.js";
import { ask, type Reply } from "./resp.js";
import { closeAll, ServerProcess, startAll } from "./server-process.js";
import { waitUntil } from "./wait-until.js";

// The default periods make a failover take ten seconds and more. They must not become much shorter,
// because a sentinel that is failing over looks at the servers only once a second: one that has not
// heard of the failover for four publish-periods would turn the new master back into a replica, and
// replicas not seen for five ping-periods (left alone here) are not promoted.
const periods = ["info-period", 500, "publish-period", 500, "ask-period", 500];

export class Sentinel extends ServerProcess {
  readonly port: number;

  constructor(port: number) {
    super("sentinel");
    this.port = port;
  }

  protected launch(): Launch {
    return { command: "redis-server", args: [join(this.dir, "sentinel.conf"), "--sentinel"] };
  }

  protected async isReady(): Promise<boolean> {
    const info = String(await this.ask("INFO", "server"));
    return info.includes(`process_id:${this.pid}\r\n`);
  }

  ask(...args: readonly (string | number)[]): Promise<Reply> {
    return ask(this.port, ...args);
  }

  /** The fields that the sentinel reports about a master. */
  async view(masterName: string): Promise<Readonly<Record<string, string>>> {
    const fields = (await this.ask("SENTINEL", "MASTER", masterName)) as readonly string[];
    const pairs = fields.flatMap((name, at) =>
      at % 2 === 0 ? [[name, fields[at + 1] ?? ""]] : [],
    );
    return Object.fromEntries(pairs);
  }
}

/** One master, its replicas, and the sentinels that watch them. */
export class RedisSentinel implements AsyncDisposable {
  readonly masterName = "holdfast";
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly Sentinel[];

  constructor(servers: readonly RedisServer[], sentinels: readonly Sentinel[]) {
    this.servers = servers;
    this.sentinels = sentinels;
  }

  /** The addresses that a client needs: `{ sentinels, name: masterName }`. */
  get addresses(): readonly { readonly host: string; readonly port: number }[] {
    return this.sentinels.map(({ port }) => ({ host: "127.0.0.1", port }));
  }

  /** The master that all running sentinels name; null while they disagree or fail over. */
  async master(): Promise<RedisServer | null> {
    const running = this.sentinels.filter((sentinel) => sentinel.running);
    const views = await Promise.all(running.map((sentinel) => sentinel.view(this.masterName)));
    const [port] = views.map((view) => view.port);
    // Other flags mean that it is down or that a failover is under way.
    if (views.some((view) => view.port !== port || view.flags !== "master")) return null;
    return this.servers.find((server) => `${server.port}` === port) ?? null;
  }

  /** Makes a sentinel promote a replica. Resolves with the new master, see `promoted`. */
  async promote(): Promise<RedisServer> {
    const old = await this.master();
    if (!old) throw new Error("the sentinels do not agree on a master");
    const sentinel = this.sentinels.find(({ running }) => running);
    await sentinel?.ask("SENTINEL", "FAILOVER", this.masterName);
    return await this.promoted(old);
  }

  /**
   * Resolves when the sentinels have replaced `old` and are done: all name the same master, and all
   * servers that run, `old` included, follow it. (A failover during a failover can fail for good.)
   */
  async promoted(old: RedisServer): Promise<RedisServer> {
    let master: RedisServer | null = null;
    await waitUntil(
      async () => {
        master = await this.master();
        return master !== null && master !== old && (await this.#allFollow(master));
      },
      // Sentinels that split their votes wait six seconds before they try again.
      {
        what: `the sentinels replace the master on port ${old.port}`,
        timeoutMs: 40_000,
        everyMs: 50,
      },
    );
    return master ?? old;
  }

  async #allFollow(master: RedisServer): Promise<boolean> {
    const answering = this.servers.filter((server) => server.running && !isStopped(server.pid));
    const follow = answering.map(async (server) => {
      const { role, master_port, master_link_status } = await server.info("replication");
      if (server === master) return role === "master";
      return master_port === `${master.port}` && master_link_status === "up";
    });
    return (await Promise.all(follow)).every((follows) => follows);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return closeAll([...this.sentinels, ...this.servers]);
  }
}

export interface SentinelOptions {
  /** Default 2. */
  readonly replicas?: number;
  /** Default 3; a majority of them must agree that the master is down. */
  readonly sentinels?: number;
  /** How long a server may be silent before it counts as down. Default 500. */
  readonly downAfterMs?: number;
}

export async function startSentinel({
  replicas: replicaCount = 2,
  sentinels: sentinelCount = 3,
  downAfterMs = 500,
}: SentinelOptions = {}): Promise<RedisSentinel> {
  const { master, replicas } = await startReplication({ replicas: replicaCount });
  const servers = [master, ...replicas];
  try {
    const name = "holdfast";
    const quorum = Math.floor(sentinelCount / 2) + 1;
    const config = [
      "bind 127.0.0.1",
      `sentinel monitor ${name} 127.0.0.1 ${master.port} ${quorum}`,
      `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
      `sentinel failover-timeout ${name} 3000`,
    ];
    const starts = Array.from({ length: sentinelCount }, () => startOneSentinel(config));
    const group = new RedisSentinel(servers, await startAll(starts));
    await allKnown(group).catch(async (error: unknown) => {
      await closeAll(group.sentinels);
      throw error;
    });
    return group;
  } catch (error) {
    await closeAll(servers);
    throw error;
  }
}

/** Starts a sentinel with these lines in its configuration. */
export function startOneSentinel(config: readonly string[]): Promise<Sentinel> {
  return onFreePorts(1, async ([port = 0]) => {
    const sentinel = new Sentinel(port);
    try {
      const lines = [`port ${port}`, `dir ${sentinel.dir}`, ...config];
      await writeFile(join(sentinel.dir, "sentinel.conf"), `${lines.join("\n")}\n`);
      await sentinel.start();
      await sentinel.ask("SENTINEL", "DEBUG", ...periods);
      return sentinel;
    } catch (error) {
      await sentinel.close();
      throw error;
    }
  });
}

async function allKnown({ sentinels, servers, masterName }: RedisSentinel): Promise<void> {
  await waitUntil(
    async () => {
      const views = await Promise.all(sentinels.map((sentinel) => sentinel.view(masterName)));
      return views.every(
        (view) =>
          view["num-other-sentinels"] === `${sentinels.length - 1}` &&
          view["num-slaves"] === `${servers.length - 1}`,
      );
    },
    { what: "the sentinels know each other and the replicas" },
  );
}
