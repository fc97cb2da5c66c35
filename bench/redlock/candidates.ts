/** All packages that lock on a majority of Redis nodes, behind one interface, with defaults. */
import { Redlock as SesamecareRedlock } from "@sesamecare-oss/redlock";
import { Holdfast } from "holdfast";
import { redlockStore } from "holdfast/redlock";
import { Redis } from "ioredis";
import { RedlockMutex } from "redis-semaphore";
import { createRedlock, IoredisAdapter } from "redlock-universal";
import Redlock4 from "redlock4";
import Redlock5 from "redlock5";
import type { Locker } from "../turns.js";

export interface Candidate {
  readonly name: string;
  readonly role: "holdfast" | "peer";
  /** The commands it sends beside scripts, by their names in INFO commandstats. */
  readonly plain?: readonly string[];
  /** Takes and gives back on these clients. */
  on(clients: readonly Redis[], ttlMs: number): Locker;
}

const TTL_MS = 10_000;
/** Peers poll. This is more often than their defaults, in their favour. */
const RETRY_MS = 20;
const TRIES = 1_000_000;

const holdfast: Candidate = {
  name: "holdfast",
  role: "holdfast",
  on: (clients, ttlMs) => {
    const locks = new Holdfast(redlockStore({ clients, bootstrap: "now" }), { ttlMs });
    return {
      acquire: async (name) => {
        const lease = await locks.mutex(name).acquire();
        return () => lease.release();
      },
      close: () => locks.close(),
    };
  },
};

const redlock4: Candidate = {
  name: "redlock 4",
  role: "peer",
  on: (clients, ttlMs) => {
    const redlock = new Redlock4(clients, { retryCount: TRIES, retryDelay: RETRY_MS });
    return {
      acquire: async (name) => {
        const held = await redlock.lock(name, ttlMs);
        return () => Promise.resolve(held.unlock());
      },
      close: async () => {},
    };
  },
};

const redlock5: Candidate = {
  name: "redlock 5 beta",
  role: "peer",
  on: (clients, ttlMs) => {
    const redlock = new Redlock5(clients, { retryCount: -1, retryDelay: RETRY_MS });
    return {
      acquire: async (name) => {
        const held = await redlock.acquire([name], ttlMs);
        return () => held.release();
      },
      close: async () => {},
    };
  },
};

const sesamecare: Candidate = {
  name: "@sesamecare-oss/redlock",
  role: "peer",
  on: (clients, ttlMs) => {
    const settings = { retryCount: -1, retryDelay: RETRY_MS };
    const redlock = new SesamecareRedlock(clients as never, settings);
    return {
      acquire: async (name) => {
        const held = await redlock.acquire([name], ttlMs);
        return () => held.release();
      },
      close: async () => {},
    };
  },
};

const redisSemaphore: Candidate = {
  name: "redis-semaphore RedlockMutex",
  role: "peer",
  plain: ["set"],
  on: (clients, ttlMs) => ({
    acquire: async (name) => {
      const mutex = new RedlockMutex(clients as never, name, {
        lockTimeout: ttlMs,
        acquireTimeout: 600_000,
        retryInterval: RETRY_MS,
      });
      await mutex.acquire();
      return () => mutex.release();
    },
    close: async () => {},
  }),
};

const redlockUniversal: Candidate = {
  name: "redlock-universal",
  role: "peer",
  plain: ["set"],
  on: (clients, ttlMs) => {
    const adapters = clients.map((client) => new IoredisAdapter(client as never));
    return {
      acquire: async (name) => {
        const one = createRedlock({
          adapters,
          key: name,
          ttl: ttlMs,
          retryAttempts: TRIES,
          retryDelay: RETRY_MS,
        });
        const held = await one.acquire();
        return () => one.release(held);
      },
      close: async () => {},
    };
  },
};

export const candidates: readonly Candidate[] = [
  holdfast,
  redlock4,
  redlock5,
  sesamecare,
  redisSemaphore,
  redlockUniversal,
];

/** A candidate by its name, with connections of its own. */
export function open(name: string, ports: readonly number[], ttlMs: number = TTL_MS): Locker {
  const found = candidates.find((one) => one.name === name);
  if (!found) throw new Error(`no candidate ${name}`);
  const clients = ports.map((port) => new Redis(port));
  // A node that is stopped on purpose is no news.
  for (const client of clients) client.on("error", () => {});
  const locker = found.on(clients, ttlMs);
  return {
    acquire: (lock) => locker.acquire(lock),
    async close() {
      await locker.close();
      for (const client of clients) client.disconnect();
    },
  };
}
