/**
 * Packages that one would use instead, as their READMEs recommend: with their defaults, on as many
 * servers as they ask for, with the call that extends the lock, and with the check for its loss.
 * They are the packages of the benchmarks. A package is loaded when it is opened.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import { PEERS } from "../versions.js";
import { connectAll, TTL_MS } from "./rungs.js";
import type { Endpoint, Holding, Locker, Subject, TruthReader } from "./subject.js";

const load = createRequire(join(PEERS, "package.json"));
/** As in the examples for `using`: longer than all retries of an acquire take together. */
const USING_TTL_MS = 5_000;
/** A program whose package gave up asks again. */
const RETRY_MS = 20;

/** Asks again where the package gives up. `isRefusal`: default, every error. */
function insisting(
  acquire: (name: string) => Promise<Holding>,
  isRefusal: (error: unknown) => boolean = () => true,
): Locker {
  return {
    async acquire(name) {
      for (;;) {
        try {
          return await acquire(name);
        } catch (error) {
          if (!isRefusal(error)) throw error;
          await pause(RETRY_MS);
        }
      }
    },
  };
}

type Using = (name: string, routine: (signal: AbortSignal) => Promise<void>) => Promise<unknown>;

/** The routine of `using` lasts until the release; its signal tells of a loss. */
function holdingOf(using: Using, name: string): Promise<Holding> {
  return new Promise((resolve, reject) => {
    let finish = (): void => undefined;
    const finished = new Promise<void>((end) => {
      finish = end;
    });
    const used = using(name, async (signal) => {
      resolve({
        isBelieved: () => !signal.aborted,
        onLost: (tell) => signal.addEventListener("abort", () => tell("its signal aborted")),
        release: () => {
          finish();
          return used;
        },
      });
      await finished;
    });
    used.catch(reject);
  });
}

interface Parts {
  readonly clients: readonly Redis[];
  readonly ttlMs: number;
}

function onRedis(
  { id, title, ...rest }: Pick<Subject, "id" | "title" | "packages"> & Partial<Subject>,
  open: (parts: Parts) => Locker,
): Subject {
  return {
    id,
    title,
    family: "peer",
    place: "quorum",
    ttlMs: TTL_MS,
    open: async (endpoint: Endpoint) =>
      open({ clients: await connectAll(endpoint), ttlMs: endpoint.ttlMs }),
    ...rest,
  };
}

interface Redlock4Lock {
  extend(ttlMs: number): PromiseLike<Redlock4Lock>;
  unlock(): PromiseLike<unknown>;
}

const redlock4 = onRedis(
  { id: "peer-redlock-4", title: "redlock 4", packages: ["redlock4", "ioredis"] },
  ({ clients, ttlMs }) => {
    const Redlock = load("redlock4");
    const redlock = new Redlock(clients);
    redlock.on("clientError", () => undefined);
    return insisting(async (name) => {
      let lock: Redlock4Lock = await redlock.lock(name, ttlMs);
      let lost: string | null = null;
      let tell = (_: string): void => undefined;
      // It does not extend by itself; its README says to extend before the lock expires.
      const extension = setInterval(async () => {
        try {
          lock = await lock.extend(ttlMs);
        } catch (error) {
          clearInterval(extension);
          lost = String(error);
          tell(lost);
        }
      }, ttlMs / 2);
      return {
        isBelieved: () => lost === null,
        onLost: (call) => {
          tell = call;
        },
        release: async () => {
          clearInterval(extension);
          await lock.unlock();
        },
      };
    });
  },
);

const redlock5 = onRedis(
  {
    id: "peer-redlock-5",
    title: "redlock 5 beta",
    packages: ["redlock5", "ioredis"],
    ttlMs: USING_TTL_MS,
  },
  ({ clients, ttlMs }) => {
    const { default: Redlock } = load("redlock5");
    const redlock = new Redlock(clients);
    redlock.on("error", () => undefined);
    const using: Using = (name, routine) => redlock.using([name], ttlMs, routine);
    return insisting((name) => holdingOf(using, name));
  },
);

const sesamecare = onRedis(
  {
    id: "peer-sesamecare",
    title: "@sesamecare-oss/redlock",
    packages: ["@sesamecare-oss/redlock", "ioredis"],
    ttlMs: USING_TTL_MS,
  },
  ({ clients, ttlMs }) => {
    const { Redlock } = load("@sesamecare-oss/redlock");
    const redlock = new Redlock(clients);
    redlock.on("error", () => undefined);
    const using: Using = (name, routine) => redlock.using([name], ttlMs, routine);
    return insisting((name) => holdingOf(using, name));
  },
);

const universal = onRedis(
  {
    id: "peer-universal",
    title: "redlock-universal",
    packages: ["redlock-universal", "ioredis"],
    ttlMs: USING_TTL_MS,
  },
  ({ clients, ttlMs }) => {
    const { createRedlock, IoredisAdapter } = load("redlock-universal");
    const adapters = clients.map((client) => new IoredisAdapter(client));
    const using: Using = (name, routine) =>
      createRedlock({ adapters, key: name, ttl: ttlMs }).using(routine);
    return insisting((name) => holdingOf(using, name));
  },
);

const semaphore = onRedis(
  {
    id: "peer-semaphore",
    title: "redis-semaphore",
    packages: ["redis-semaphore", "ioredis"],
    place: "redis",
    keyPrefix: "mutex:",
  },
  ({ clients: [client], ttlMs }) => {
    const { Mutex } = load("redis-semaphore");
    return insisting(async (name) => {
      let tell = (_: string): void => undefined;
      const onLockLost = (error: Error): void => tell(error.message);
      const mutex = new Mutex(client, name, { lockTimeout: ttlMs, onLockLost });
      await mutex.acquire();
      return {
        isBelieved: () => mutex.isAcquired,
        onLost: (call) => {
          tell = call;
        },
        release: () => mutex.release(),
      };
    });
  },
);

/** These do not say in their stores which process holds the lock. */
const unknownTruth = (): Promise<TruthReader> =>
  Promise.resolve({ read: () => Promise.resolve(null), close: () => Promise.resolve() });

/** Leases of etcd have at least 2 s. */
const ETCD_TTL_MS = 2_000;

const etcd: Subject = {
  id: "peer-etcd3",
  title: "etcd3",
  family: "peer",
  place: "etcd",
  ttlMs: ETCD_TTL_MS,
  packages: ["etcd3"],
  readTruth: unknownTruth,
  async open({ ports, ttlMs }) {
    const { Etcd3, EtcdLockFailedError } = load("etcd3");
    const client = new Etcd3({ hosts: ports.map((port) => `http://127.0.0.1:${port}`) });
    await client.get("warm-up");
    return insisting(
      async (name) => {
        const lock = client.lock(name).ttl(Math.ceil(ttlMs / 1_000));
        await lock.acquire();
        // It keeps its lease alive by itself, and has no way to tell of a loss.
        return { isBelieved: () => true, release: () => lock.release() };
      },
      (error) => error instanceof EtcdLockFailedError,
    );
  },
};

/** The shortest time after which it takes a lock for stale. */
const STALE_MS = 5_000;

const lockfile: Subject = {
  id: "peer-lockfile",
  title: "proper-lockfile",
  family: "peer",
  place: "folder",
  ttlMs: STALE_MS,
  packages: ["proper-lockfile"],
  readTruth: unknownTruth,
  async open({ folder, ttlMs }) {
    const { lock } = load("proper-lockfile");
    return insisting(
      async (name) => {
        let lost: string | null = null;
        let tell = (_: string): void => undefined;
        const release = await lock(join(folder, name), {
          realpath: false,
          stale: ttlMs,
          onCompromised: (error: Error) => {
            lost = error.message;
            tell(lost);
          },
        });
        return {
          isBelieved: () => lost === null,
          onLost: (call) => {
            tell = call;
          },
          release,
        };
      },
      (error) => error instanceof Error && "code" in error && error.code === "ELOCKED",
    );
  },
};

export const peers: readonly Subject[] = [
  redlock4,
  redlock5,
  sesamecare,
  universal,
  semaphore,
  etcd,
  lockfile,
];
