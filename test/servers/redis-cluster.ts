import { onFreePorts } from "./free-port.js";
import { type RedisServer, startRedis, untilInSync } from "./redis.js";
import { closeAll, startAll } from "./server-process.js";
import { waitUntil } from "./wait-until.js";

const slotCount = 16_384;

export interface ClusterNode {
  readonly server: RedisServer;
  /** The id of the node in the cluster. */
  readonly id: string;
}

export interface ClusterOptions {
  /** Default 3. */
  readonly masters?: number;
  /** Default 0. */
  readonly replicasPerMaster?: number;
  readonly args?: readonly string[];
}

/** A Redis Cluster. Its slots are spread evenly in the order of `masters`. */
export class RedisCluster implements AsyncDisposable {
  readonly masters: readonly ClusterNode[];
  /** Replica r of master m is at `m + r * masters.length`. */
  readonly replicas: readonly ClusterNode[];
  #migration: Promise<unknown> = Promise.resolve();

  constructor(masters: readonly ClusterNode[], replicas: readonly ClusterNode[]) {
    this.masters = masters;
    this.replicas = replicas;
  }

  get nodes(): readonly ClusterNode[] {
    return [...this.masters, ...this.replicas];
  }

  get urls(): readonly string[] {
    return this.nodes.map((node) => node.server.url);
  }

  async slotOf(key: string): Promise<number> {
    return Number(await this.#anyNode().server.ask("CLUSTER", "KEYSLOT", key));
  }

  /** The owner of the slot, when all running nodes agree on it: gossip takes a while. */
  async ownerOf(slot: number): Promise<ClusterNode> {
    let agreed: ClusterNode | undefined;
    await waitUntil(
      async () => {
        const [first, ...others] = await this.#ownersOf(slot);
        agreed = others.every((owner) => owner === first) ? first : undefined;
        return agreed !== undefined;
      },
      { what: `all nodes agree on the owner of slot ${slot}` },
    );
    return agreed as ClusterNode;
  }

  /**
   * Begins the move of a slot. Until `finish`, the old owner answers ASK for keys that it no longer
   * has, and the new owner accepts them only after ASKING. `moveKeys` moves the keys.
   */
  async beginMove(slot: number, to: ClusterNode): Promise<SlotMove> {
    const from = await this.ownerOf(slot);
    await to.server.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id);
    await from.server.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id);
    return {
      moveKeys: (isMoved = () => true) => this.#moveKeys(slot, from, to, isMoved),
      finish: async () => {
        // The new owner first: otherwise a crash in between would leave the slot without an owner.
        const masters = [to, from, ...this.masters.filter((node) => node !== to && node !== from)];
        for (const node of masters) {
          if (node.server.running) await node.server.ask("CLUSTER", "SETSLOT", slot, "NODE", to.id);
        }
        await this.#agree(slot, to);
      },
    };
  }

  /** Moves a slot with its keys; resolves when every node agrees on the new owner. */
  async moveSlot(slot: number, to: ClusterNode): Promise<void> {
    const move = await this.beginMove(slot, to);
    await move.moveKeys();
    await move.finish();
  }

  /** Makes the replica the master of its slots. Resolves when every node agrees. */
  async promote(replica: ClusterNode, slot: number): Promise<void> {
    const old = await this.#ownerBy(replica, slot);
    await replica.server.ask("CLUSTER", "FAILOVER", ...(old.server.running ? [] : ["FORCE"]));
    await this.#agree(slot, replica);
  }

  /**
   * One node at a time: MIGRATE blocks its server until the other one has answered, so two servers
   * that migrate to each other would block each other.
   */
  #moveKeys(
    slot: number,
    from: ClusterNode,
    to: ClusterNode,
    isMoved: (key: string) => boolean,
  ): Promise<string[]> {
    const move = async (): Promise<string[]> => {
      const found = (await from.server.ask("CLUSTER", "GETKEYSINSLOT", slot, 1_000)) as string[];
      const keys = found.filter(isMoved);
      const { port } = to.server;
      const how = ["", 0, 20_000, "REPLACE", "KEYS"];
      if (keys.length > 0) await from.server.ask("MIGRATE", "127.0.0.1", port, ...how, ...keys);
      return found.filter((key) => !isMoved(key));
    };
    const moved = this.#migration.then(move);
    this.#migration = moved.catch(() => undefined);
    return moved;
  }

  async #agree(slot: number, owner: ClusterNode): Promise<void> {
    await waitUntil(async () => (await this.#ownersOf(slot)).every((node) => node === owner), {
      what: `all nodes see slot ${slot} on port ${owner.server.port}`,
    });
  }

  /** The owner of the slot according to each running node. */
  #ownersOf(slot: number): Promise<ClusterNode[]> {
    const observers = this.nodes.filter((node) => node.server.running);
    return Promise.all(observers.map((observer) => this.#ownerBy(observer, slot)));
  }

  async #ownerBy(observer: ClusterNode, slot: number): Promise<ClusterNode> {
    // Each element: first slot, last slot, master [ip, port, id], replicas.
    const ranges = (await observer.server.ask("CLUSTER", "SLOTS")) as SlotRange[];
    const range = ranges.find(([first, last]) => first <= slot && slot <= last);
    const owner = this.nodes.find((node) => node.id === range?.[2][2]);
    if (!owner) throw new Error(`slot ${slot} has no owner`);
    return owner;
  }

  #anyNode(): ClusterNode {
    const node = this.nodes.find(({ server }) => server.running);
    if (!node) throw new Error("no node of the cluster runs");
    return node;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return closeAll(this.nodes.map((node) => node.server));
  }
}

type SlotRange = [first: number, last: number, master: [ip: string, port: number, id: string]];

export interface SlotMove {
  /** Moves the keys that `isMoved` selects, default all. Resolves with the keys that stay. */
  moveKeys(isMoved?: (key: string) => boolean): Promise<string[]>;
  finish(): Promise<void>;
}

export async function startRedisCluster({
  masters: masterCount = 3,
  replicasPerMaster = 0,
  args = [],
}: ClusterOptions = {}): Promise<RedisCluster> {
  const count = masterCount * (1 + replicasPerMaster);
  const starts = Array.from({ length: count }, () => startNode(args));
  const servers = await startAll(starts);
  try {
    const nodes = await Promise.all(
      servers.map(async (server) => ({ server, id: String(await server.ask("CLUSTER", "MYID")) })),
    );
    const cluster = new RedisCluster(nodes.slice(0, masterCount), nodes.slice(masterCount));
    await form(cluster);
    return cluster;
  } catch (error) {
    await closeAll(servers);
    throw error;
  }
}

function startNode(args: readonly string[]): Promise<RedisServer> {
  return onFreePorts(1, ([busPort = 0]) => {
    const cluster = ["--cluster-enabled", "yes", "--cluster-port", `${busPort}`];
    // This also sets how often nodes gossip. On a busy machine a node may be silent for a second.
    cluster.push("--cluster-node-timeout", "4000");
    // Replicas keep their master, and fail over only when a test asks.
    cluster.push("--cluster-allow-replica-migration", "no", "--cluster-replica-no-failover", "yes");
    return startRedis({ args: [...cluster, ...args] });
  });
}

async function form(cluster: RedisCluster): Promise<void> {
  const { masters, replicas, nodes } = cluster;
  for (const [index, { server }] of nodes.entries()) {
    // Nodes with equal epochs would have to resolve the conflict first.
    await server.ask("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
    if (index >= masters.length) continue;
    const [first, next] = [index, index + 1].map((n) =>
      Math.floor((n * slotCount) / masters.length),
    );
    await server.ask("CLUSTER", "ADDSLOTSRANGE", first ?? 0, (next ?? slotCount) - 1);
  }
  for (const { server } of nodes.slice(1)) {
    const busPort = String(((await server.ask("CONFIG", "GET", "cluster-port")) as string[])[1]);
    await nodes[0]?.server.ask("CLUSTER", "MEET", "127.0.0.1", server.port, busPort);
  }
  await waitUntil(
    async () => {
      const known = await Promise.all(nodes.map(({ server }) => server.ask("CLUSTER", "NODES")));
      return known.every((list) => nodes.every(({ id }) => String(list).includes(id)));
    },
    { what: "the nodes of the cluster know each other" },
  );
  const roles: RegExp[] = [];
  for (const [index, { server, id }] of replicas.entries()) {
    const master = masters[index % masters.length];
    if (!master) continue;
    await server.ask("CLUSTER", "REPLICATE", master.id);
    await untilInSync(master.server, server);
    roles.push(new RegExp(`^${id} .*slave\\S* ${master.id} `, "m"));
  }
  // A master votes for a replica only if it knows it as one.
  await waitUntil(
    async () => {
      const known = await Promise.all(nodes.map(({ server }) => server.ask("CLUSTER", "NODES")));
      return known.every((list) => roles.every((role) => role.test(String(list))));
    },
    { what: "the nodes of the cluster know the replicas" },
  );
  await waitUntil(
    async () => {
      const states = await Promise.all(nodes.map(({ server }) => server.ask("CLUSTER", "INFO")));
      return states.every((state) => String(state).includes("cluster_state:ok"));
    },
    { what: "the cluster is ok on all nodes" },
  );
}
