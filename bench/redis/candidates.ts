/**
 * All packages that lock on one Redis, behind one interface, with their own defaults but for
 * retries. A package is loaded when it is opened, so that a process carries only its own.
 */
import { randomUUID } from "node:crypto";
import { Cluster, Redis } from "ioredis";
import type { Locker } from "../turns.js";

export interface Candidate {
  readonly name: string;
  readonly role: "holdfast" | "peer" | "floor";
  /** The commands it sends beside scripts, by their names in INFO commandstats. */
  readonly plain?: readonly string[];
  open(port: number, ttlMs?: number): Promise<Locker>;
}

const TTL_MS = 30_000;
/** Peers poll. This is far more often than their defaults, in their favour. */
const RETRY_MS = 10;
const TRIES = 1_000_000;

const COMPARE_AND_DELETE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';

async function loadHoldfast() {
  return { ...(await import("holdfast")), ...(await import("holdfast/redis")) };
}

/** Terms that differ from those of a plain server without replicas. */
interface Terms {
  readonly replicas?: number;
  readonly fairness?: "bounded" | "strict";
  readonly release?: "answered" | "sent";
  readonly connect?: typeof toServer;
}

function toServer(port: number): Redis | Cluster {
  return new Redis(port);
}

/** To the Cluster that has a node at this port. */
export function toCluster(port: number): Redis | Cluster {
  return new Cluster([port]);
}

export function holdfast(
  name: string,
  { replicas = 0, fairness = "bounded", release = "answered", connect = toServer }: Terms = {},
): Candidate {
  return {
    name,
    role: "holdfast",
    open: async (port, ttlMs = TTL_MS) => {
      const { Holdfast, redisStore } = await loadHoldfast();
      const client = connect(port);
      const locks = new Holdfast(redisStore({ client, replicas }), { ttlMs, fairness, release });
      return {
        acquire: async (lock) => {
          const lease = await locks.mutex(lock).acquire();
          return () => lease.release();
        },
        close: async () => {
          await locks.close();
          client.disconnect();
        },
      };
    },
  };
}

/** The two commands that no lock can do without, and a WAIT behind the first; it does not wait. */
export function raw(
  name: string,
  { replicas = 0, connect = toServer }: Omit<Terms, "fairness"> = {},
): Candidate {
  return {
    name,
    role: "floor",
    plain: ["set"],
    open: async (port, ttlMs = TTL_MS) => {
      const client = connect(port);
      client.defineCommand("cad", { lua: COMPARE_AND_DELETE, numberOfKeys: 1 });
      const { cad } = client as unknown as { cad(key: string, value: string): Promise<number> };
      return {
        acquire: async (lock) => {
          const value = randomUUID();
          const set = client.set(lock, value, "PX", ttlMs, "NX");
          const count = replicas > 0 ? await client.wait(replicas, 1_000) : 0;
          if ((await set) !== "OK") throw new Error("the raw pair met contention");
          if (count < replicas) throw new Error("the replicas did not answer");
          return () => cad.call(client, lock, value);
        },
        close: async () => client.disconnect(),
      };
    },
  };
}

const nodeRedis: Candidate = {
  name: "holdfast on node-redis",
  role: "holdfast",
  open: async (port, ttlMs = TTL_MS) => {
    const { Holdfast, redisStore } = await loadHoldfast();
    const { createClient } = await import("redis");
    const client = createClient({ url: `redis://127.0.0.1:${port}` });
    await client.connect();
    const locks = new Holdfast(redisStore({ client }), { ttlMs });
    return {
      acquire: async (lock) => {
        const lease = await locks.mutex(lock).acquire();
        return () => lease.release();
      },
      close: async () => {
        await locks.close();
        client.destroy();
      },
    };
  },
};

const redlock4: Candidate = {
  name: "redlock 4",
  role: "peer",
  open: async (port, ttlMs = TTL_MS) => {
    const client = new Redis(port);
    const { default: Redlock } = await import("redlock4");
    const redlock = new Redlock([client], { retryCount: TRIES, retryDelay: RETRY_MS });
    return {
      acquire: async (lock) => {
        const held = await redlock.lock(lock, ttlMs);
        return () => Promise.resolve(held.unlock());
      },
      close: async () => client.disconnect(),
    };
  },
};

const redlock5: Candidate = {
  name: "redlock 5 beta",
  role: "peer",
  open: async (port, ttlMs = TTL_MS) => {
    const client = new Redis(port);
    const { default: Redlock } = await import("redlock5");
    const redlock = new Redlock([client], { retryCount: -1, retryDelay: RETRY_MS });
    return {
      acquire: async (lock) => {
        const held = await redlock.acquire([lock], ttlMs);
        return () => held.release();
      },
      close: async () => client.disconnect(),
    };
  },
};

const sesamecare: Candidate = {
  name: "@sesamecare-oss/redlock",
  role: "peer",
  open: async (port, ttlMs = TTL_MS) => {
    const client = new Redis(port);
    const { Redlock } = await import("@sesamecare-oss/redlock");
    const redlock = new Redlock([client as never], {
      retryCount: -1,
      retryDelay: RETRY_MS,
    });
    return {
      acquire: async (lock) => {
        const held = await redlock.acquire([lock], ttlMs);
        return () => held.release();
      },
      close: async () => client.disconnect(),
    };
  },
};

const redisSemaphore: Candidate = {
  name: "redis-semaphore",
  role: "peer",
  plain: ["set"],
  open: async (port, ttlMs = TTL_MS) => {
    const { Mutex } = await import("redis-semaphore");
    const client = new Redis(port);
    return {
      acquire: async (lock) => {
        const mutex = new Mutex(client as never, lock, {
          lockTimeout: ttlMs,
          acquireTimeout: 600_000,
          retryInterval: RETRY_MS,
        });
        await mutex.acquire();
        return () => mutex.release();
      },
      close: async () => client.disconnect(),
    };
  },
};

const redlockUniversal: Candidate = {
  name: "redlock-universal",
  role: "peer",
  plain: ["set"],
  open: async (port, ttlMs = TTL_MS) => {
    const client = new Redis(port);
    const { createLock, IoredisAdapter } = await import("redlock-universal");
    const adapter = new IoredisAdapter(client as never);
    return {
      acquire: async (lock) => {
        const one = createLock({
          adapter,
          key: lock,
          ttl: ttlMs,
          retryAttempts: TRIES,
          retryDelay: RETRY_MS,
          performance: "lean",
        });
        const held = await one.acquire();
        return () => one.release(held);
      },
      close: async () => client.disconnect(),
    };
  },
};

const candidates: readonly Candidate[] = [
  holdfast("holdfast"),
  holdfast("holdfast strict", { fairness: "strict" }),
  nodeRedis,
  raw("raw SET NX PX + script"),
  redlock4,
  redlock5,
  sesamecare,
  redisSemaphore,
  redlockUniversal,
];

/** Left out of a quick look: packages that are like another one, and no faster. */
const ALIKE = ["holdfast on node-redis", "redlock 5 beta", "@sesamecare-oss/redlock"];

export function candidatesFor(isQuick: boolean): readonly Candidate[] {
  return candidates.filter(({ name }) => !(isQuick && ALIKE.includes(name)));
}

export function candidate(name: string): Candidate {
  const found = candidates.find((one) => one.name === name);
  if (!found) throw new Error(`no candidate ${name}`);
  return found;
}
