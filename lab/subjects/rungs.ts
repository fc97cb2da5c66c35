/** The programs of the ladder. They try once; the subject asks again, as a program would. */
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import type { Lock } from "../ladder/lock.js";
import * as rung1 from "../ladder/rung-1.js";
import * as rungHalf from "../ladder/rung-1-half.js";
import * as rung2 from "../ladder/rung-2.js";
import * as rung3 from "../ladder/rung-3.js";
import * as rung4 from "../ladder/rung-4.js";
import * as rung5 from "../ladder/rung-5.js";
import * as rungExact from "../ladder/rung-5-exact.js";
import * as rung6a from "../ladder/rung-6a.js";
import * as rung6b from "../ladder/rung-6b.js";
import * as rungHerd from "../ladder/rung-w-herd.js";
import * as rungSpin from "../ladder/rung-w-spin.js";
import { LOCK_NAME } from "../orders.js";
import type { Endpoint, Holding, Locker, Subject } from "./subject.js";

export const TTL_MS = 1_000;
/** A program that is refused asks again after this part of the ttl. */
const RETRY = 0.02;

type TryLock = (redis: Redis, key: string, ttlMs: number) => Promise<Lock | null>;

/** Clients of ioredis with its defaults. They connect again by themselves. */
export async function connectAll({ ports }: Endpoint): Promise<Redis[]> {
  const clients = ports.map((port) => new Redis(port));
  // A server that is down on purpose is no news.
  for (const client of clients) client.on("error", () => undefined);
  await Promise.all(clients.map((client) => client.ping()));
  return clients;
}

function holdingOf(lock: Lock): Holding {
  return { isBelieved: () => lock.isHeld?.() ?? true, release: () => lock.unlock() };
}

export function disconnectAll(clients: readonly Redis[]): void {
  for (const client of clients) client.disconnect();
}

/** Asks again until the program has the lock. */
function spinning(
  clients: readonly Redis[],
  ttlMs: number,
  tryLock: (name: string) => Promise<Lock | null>,
): Locker {
  return {
    close: async () => disconnectAll(clients),
    async acquire(name) {
      for (;;) {
        const lock = await tryLock(name);
        if (lock) return holdingOf(lock);
        await pause(RETRY * ttlMs);
      }
    },
  };
}

function onOneRedis(id: string, title: string, tryLock: TryLock): Subject {
  return {
    id,
    title,
    family: "ladder",
    place: "redis",
    ttlMs: TTL_MS,
    program: `lab/ladder/${id}.ts`,
    packages: ["ioredis"],
    async open(endpoint) {
      const { ttlMs } = endpoint;
      const [redis] = await connectAll(endpoint);
      if (!redis) throw new Error("no server");
      return spinning([redis], ttlMs, (name) => tryLock(redis, name, ttlMs));
    },
  };
}

const redlock: Subject = {
  ...onOneRedis("rung-6b", "Rung 6b: Redlock as published", () => Promise.resolve(null)),
  place: "quorum",
  async open(endpoint) {
    const { ttlMs } = endpoint;
    const nodes = await connectAll(endpoint);
    return spinning(nodes, ttlMs, (name) => rung6b.tryLock(nodes, name, ttlMs));
  },
};

/** The rungs that wait by themselves are tried in the faults of waiting alone. */
function waiting(
  id: string,
  title: string,
  open: (redis: Redis, endpoint: Endpoint) => Promise<(name: string) => Promise<Lock>>,
): Subject {
  return {
    ...onOneRedis(id, title, () => Promise.resolve(null)),
    faults: ["far-waiter"],
    async open(endpoint) {
      const [redis] = await connectAll(endpoint);
      if (!redis) throw new Error("no server");
      const lock = await open(redis, endpoint);
      return { acquire: async (name) => holdingOf(await lock(name)) };
    },
  };
}

export const rungs: readonly Subject[] = [
  onOneRedis("rung-1", "Rung 1: SETNX, DEL", rung1.tryLock),
  onOneRedis("rung-1-half", "Rung 1½: SETNX, then EXPIRE", rungHalf.tryLock),
  onOneRedis("rung-2", "Rung 2: SET NX PX, plain DEL", rung2.tryLock),
  onOneRedis("rung-3", "Rung 3: random value, compare and delete", rung3.tryLock),
  onOneRedis("rung-4", "Rung 4: a retry that knows its own value", rung4.tryLock),
  onOneRedis("rung-5-exact", "Rung 5: a watchdog that sets its own interval", rungExact.tryLock),
  onOneRedis("rung-5", "Rung 5: a watchdog", rung5.tryLock),
  { ...onOneRedis("rung-6a", "Rung 6a: WAIT for a replica", rung6a.tryLock), needsReplicas: true },
  redlock,
  waiting("rung-w-spin", "Rung W: spinning", async (redis, { ttlMs }) => {
    return (name) => rungSpin.lock(redis, name, ttlMs);
  }),
  waiting("rung-w-herd", "Rung W: a herd", async (redis, { ttlMs }) => {
    const messages = redis.duplicate();
    messages.on("error", () => undefined);
    await messages.subscribe(`${LOCK_NAME}:released`);
    return (name) => rungHerd.lock(redis, messages, name, ttlMs);
  }),
];
