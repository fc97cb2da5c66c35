import { type FaultProxy, startProxy } from "../../test/faults/proxy.js";
import { type RedisServer, startRedis, untilInSync } from "../../test/servers/redis.js";
import type { RespClient } from "../../test/servers/resp.js";
import { closeAll, startAll } from "../../test/servers/server-process.js";
import { waitUntil } from "../../test/servers/wait-until.js";
import type { Deployment } from "./deployment.js";
import type { LaneLinks } from "./lane-links.js";
import { Lanes } from "./lanes.js";
import { ServerClocks } from "./server-clocks.js";
import { redisWire } from "./wire.js";

export interface RedisShape {
  /** Independent servers: one, or five. */
  readonly nodes: number;
  /** Replicas of the one server. */
  readonly replicas: number;
  /** The subject waits for the replicas: a new master has some before clients find it. */
  readonly areReplicasAwaited: boolean;
  /** The key of the lock. */
  readonly key: string;
  readonly lanes: readonly string[];
}

interface Replica {
  readonly server: RedisServer;
  /** Its connection to the master. */
  readonly link: FaultProxy;
}

/** Values shorter than this do not tell one holder from another. */
const MIN_VALUE = 6;

/** One Redis with or without replicas, or several independent ones. */
export class RedisDeployment implements Deployment {
  readonly folder = "";
  readonly versions: Readonly<Record<string, string>>;
  readonly #key: string;
  readonly #areReplicasAwaited: boolean;
  readonly #nodes: RedisServer[];
  readonly #replicas: readonly Replica[];
  /** Masters that another server replaced. */
  readonly #retired: RedisServer[] = [];
  readonly #clocks: ServerClocks;
  readonly #lanesByValue = new Map<string, string>();
  readonly #lanes = new Lanes(redisWire, (lane, { args }) => {
    for (const arg of args) {
      if (arg.length >= MIN_VALUE && arg !== this.#key) this.#lanesByValue.set(arg, lane);
    }
  });
  readonly #readers = new Map<RedisServer, RespClient>();

  constructor(
    nodes: RedisServer[],
    replicas: readonly Replica[],
    clocks: ServerClocks,
    { key, areReplicasAwaited }: RedisShape,
    versions: Readonly<Record<string, string>>,
  ) {
    this.#key = key;
    this.#areReplicasAwaited = areReplicasAwaited;
    this.#nodes = nodes;
    this.#replicas = replicas;
    this.#clocks = clocks;
    this.versions = versions;
  }

  static async start(shape: RedisShape): Promise<RedisDeployment> {
    const { nodes: count, replicas, lanes } = shape;
    const clocks = new ServerClocks();
    const nodes = await startAll(
      Array.from({ length: count }, (_, index) => startRedis({ env: clocks.env(index) })),
    );
    const [master] = nodes;
    if (!master) throw new Error("a deployment needs a server");
    const { redis_version: redis = "unknown" } = await master.info("server");
    const starts = Array.from({ length: replicas }, () => startReplica(master));
    const followers = await Promise.all(starts);
    const deployment = new RedisDeployment(nodes, followers, clocks, shape, { redis });
    await untilAcknowledged(master, replicas);
    const ports = nodes.map(({ port }) => port);
    await deployment.#lanes.connect(lanes, ports);
    return deployment;
  }

  get succession(): string {
    const count = this.#nodes.length;
    return count > 1 ? `one of ${count} servers dies` : "master dies, replica takes over";
  }

  links(lane: string): LaneLinks {
    return this.#lanes.links(lane);
  }

  async readTruth(): Promise<string | null> {
    const reads = this.#nodes.map((node) => this.#read(node).catch(() => null));
    const values = await Promise.all(reads);
    const majority = Math.floor(this.#nodes.length / 2) + 1;
    const isMajority = (value: string | null): boolean =>
      values.filter((other) => other === value).length >= majority;
    return values.find((value) => value !== null && isMajority(value)) ?? null;
  }

  async isEndless(): Promise<boolean> {
    return (await this.#nodes[0]?.ask("PTTL", this.#key)) === -1;
  }

  laneOf(value: string): string | null {
    return this.#lanesByValue.get(value) ?? null;
  }

  bareMajority(lane: string): void {
    for (const proxy of this.links(lane).proxies.slice(this.#votes)) proxy.cut();
  }

  async restartEmpty(): Promise<void> {
    const node = this.#witness;
    await node.restart({ keepData: false });
    for (const { server, link } of this.#replicas) {
      // Otherwise a replica looks for its master once a second.
      await server.ask("REPLICAOF", "NO", "ONE");
      await server.ask("REPLICAOF", "127.0.0.1", link.port);
    }
    await untilAcknowledged(node, this.#replicas.length);
  }

  async shiftClock(byMs: number): Promise<void> {
    await this.#clocks.shift(this.#votes - 1, byMs, this.#witness);
  }

  cutReplicas(which: "all" | "second"): void {
    const cut = which === "all" ? this.#replicas : this.#replicas.slice(1);
    for (const { link } of cut) link.blackhole("replies");
  }

  async failOver(to: "first" | "second"): Promise<void> {
    const old = this.#witness;
    const next = this.#replicas[to === "first" ? 0 : 1]?.server;
    await old.kill();
    if (!next) return;
    await next.ask("REPLICAOF", "NO", "ONE");
    this.#nodes[0] = next;
    this.#retired.push(old);
    if (this.#areReplicasAwaited) await this.#giveReplicas(next, old);
    await this.#lanes.moveTo(next.port);
  }

  /** The old master comes back, as Sentinel would have it: a replica of the new one. */
  async #giveReplicas(next: RedisServer, old: RedisServer): Promise<void> {
    const others = this.#replicas.filter(({ server }) => server !== next);
    await old.start();
    const followers = [old, ...others.map(({ server }) => server)];
    for (const server of followers) await server.ask("REPLICAOF", "127.0.0.1", next.port);
    await untilAcknowledged(next, followers.length);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const reader of this.#readers.values()) await reader.close();
    await this.#lanes.close();
    await closeAll(this.#replicas.flatMap(({ server, link }) => [link, server]));
    await closeAll([...this.#nodes, ...this.#retired]);
  }

  /** The least number of servers by which a lock holds. */
  get #votes(): number {
    return Math.floor(this.#nodes.length / 2) + 1;
  }

  /** The last server of a bare majority. */
  get #witness(): RedisServer {
    const node = this.#nodes[this.#votes - 1];
    if (!node) throw new Error("a deployment needs a server");
    return node;
  }

  async #read(node: RedisServer): Promise<string | null> {
    const reader = this.#readers.get(node) ?? (await node.client());
    this.#readers.set(node, reader);
    try {
      const value = await reader.send("GET", this.#key);
      return typeof value === "string" ? value : null;
    } catch (error) {
      this.#readers.delete(node);
      throw error;
    }
  }
}

/** Resolves when so many replicas acknowledge a write. */
async function untilAcknowledged(master: RedisServer, count: number): Promise<void> {
  if (count === 0) return;
  await using client = await master.client();
  await waitUntil(
    async () => {
      await client.send("PUBLISH", "lab", "acknowledge");
      return (await client.send("WAIT", count, 100)) === count;
    },
    { what: `${count} replicas acknowledge` },
  );
}

async function startReplica(master: RedisServer): Promise<Replica> {
  const link = await startProxy({ targetPort: master.port });
  const server = await startRedis({ args: ["--replicaof", "127.0.0.1", `${link.port}`] });
  await untilInSync(master, server);
  return { server, link };
}
