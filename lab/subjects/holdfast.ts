/** The stores of Holdfast, each with its defaults. The memory store is of one process only. */
import { join } from "node:path";
import { connect, Holdfast } from "holdfast";
import { fileStore } from "holdfast/file";
import { redisStore } from "holdfast/redis";
import { redlockStore } from "holdfast/redlock";
import type { Store } from "holdfast/store";
import { LOCK_NAME } from "../orders.js";
import { connectAll, disconnectAll, TTL_MS } from "./rungs.js";
import type { Endpoint, Holding, Locker, Subject, TruthReader } from "./subject.js";

/** Servers of etcd and ZooKeeper have no shorter leases, by their defaults. */
const LONG_TTL_MS = 2_000;

function lockerOf({ locks, disconnect }: Opened): Locker {
  return {
    async close() {
      await locks.close();
      disconnect?.();
    },
    async acquire(name): Promise<Holding> {
      const lease = await locks.mutex(name).acquire();
      return {
        token: lease.token,
        isBelieved: () => lease.state === "held",
        onLost: (tell) => {
          const { signal } = lease;
          signal.addEventListener("abort", () => tell(reasonOf(signal.reason)), { once: true });
        },
        release: () => lease.release(),
      };
    },
  };
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error && "reason" in cause ? String(cause.reason) : String(cause);
}

interface Opened {
  readonly locks: Holdfast;
  /** Closes the connections that the store does not close itself. */
  disconnect?(): void;
}

type Open = (endpoint: Endpoint) => Promise<Opened>;

/** A lock and its release: connections and scripts are there before the trial begins. */
async function warmUp(opened: Opened): Promise<Opened> {
  await opened.locks.mutex("warm-up").run(() => undefined);
  return opened;
}

function subjectOf(
  id: string,
  title: string,
  open: Open,
  more: Pick<Subject, "place" | "packages"> & Partial<Subject>,
): Subject {
  return {
    id,
    title,
    family: "holdfast",
    ttlMs: TTL_MS,
    open: async (endpoint) => lockerOf(await warmUp(await open(endpoint))),
    readTruth: async (endpoint) => truthOf(await open(endpoint)),
    ...more,
  };
}

function truthOf({ locks, disconnect }: Opened): TruthReader {
  const pids = new Map<string, number>();
  return {
    async read() {
      const [holder] = (await locks.inspect(LOCK_NAME)).holders;
      if (!holder) return null;
      pids.set(`${holder.token}`, Number(holder.meta.pid));
      return `${holder.token}`;
    },
    pidOf: (token) => pids.get(token),
    async close() {
      await locks.close();
      disconnect?.();
    },
  };
}

const onClients =
  (storeOf: (clients: Awaited<ReturnType<typeof connectAll>>) => Store): Open =>
  async (endpoint) => {
    const { ttlMs } = endpoint;
    const clients = await connectAll(endpoint);
    const locks = new Holdfast(storeOf(clients), { ttlMs });
    return { locks, disconnect: () => disconnectAll(clients) };
  };

const onRedis = (replicas: number): Open =>
  onClients(([client]) => {
    if (!client) throw new Error("no server");
    return redisStore({ client, replicas });
  });

/** By URL: `hosts` are the servers as `host:port`. */
const byUrl =
  (url: (hosts: string) => string): Open =>
  async ({ ports, ttlMs }) => {
    const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
    return { locks: await connect(url(hosts), { ttlMs }) };
  };

const redis: Subject = subjectOf("holdfast-redis", "Holdfast on Redis", onRedis(0), {
  place: "redis",
  packages: ["holdfast", "ioredis"],
});

export const holdfastStores: readonly Subject[] = [
  redis,
  { ...redis, id: "holdfast-fenced", title: "Holdfast on Redis, with a fence", isFenced: true },
  subjectOf("holdfast-replicas", "Holdfast on Redis, replicas: 2", onRedis(2), {
    place: "redis",
    needsReplicas: true,
    packages: ["holdfast", "ioredis"],
  }),
  subjectOf(
    "holdfast-redlock",
    "Holdfast on five Redis servers",
    // The servers of a trial are new: no lock of theirs is held.
    onClients((clients) => {
      // Each process reaches the servers by addresses of its own, through its proxies.
      const nodeNames = clients.map((_, index) => `node-${index + 1}`);
      return redlockStore({ clients, nodeNames, bootstrap: "now" });
    }),
    { place: "quorum", packages: ["holdfast", "ioredis"] },
  ),
  subjectOf(
    "holdfast-etcd",
    "Holdfast on etcd",
    byUrl((hosts) => `etcd://${hosts}`),
    { place: "etcd", packages: ["holdfast"], ttlMs: LONG_TTL_MS },
  ),
  subjectOf(
    "holdfast-zookeeper",
    "Holdfast on ZooKeeper",
    byUrl((hosts) => `zookeeper://${hosts}/locks`),
    { place: "zookeeper", packages: ["holdfast"], ttlMs: LONG_TTL_MS },
  ),
  subjectOf(
    "holdfast-postgres",
    "Holdfast on Postgres",
    byUrl((hosts) => `postgres://postgres@${hosts}/postgres`),
    { place: "postgres", packages: ["holdfast", "pg"] },
  ),
  subjectOf(
    "holdfast-file",
    "Holdfast on a file",
    async ({ folder, ttlMs }) => ({
      locks: new Holdfast(fileStore({ path: join(folder, "locks.db") }), { ttlMs }),
    }),
    { place: "folder", packages: ["holdfast", "libsql"] },
  ),
];
