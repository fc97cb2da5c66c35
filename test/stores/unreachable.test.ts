/** Without a server, errors and events of every client name the address and the reason. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Cluster, Redis } from "ioredis";
import { createClient, createSentinel } from "redis";
import { expect, test } from "vitest";
import { connect } from "../../src/api/connect.js";
import { Holdfast } from "../../src/api/holdfast.js";
import type { Store } from "../../src/contract/store.js";
import { StoreError } from "../../src/errors/index.js";
import { channels } from "../../src/events/events.js";
import type { AcquireOptions } from "../../src/options/options.js";
import { etcdStore } from "../../src/stores/etcd/index.js";
import { redisStore } from "../../src/stores/redis/index.js";
import { redlockStore } from "../../src/stores/redlock/index.js";
import { isFull } from "../fixtures/depth.js";
import { onFreePorts } from "../servers/free-port.js";
import { startRedisCluster } from "../servers/redis-cluster.js";

/** A thousand of each kind take a minute of computing. */
const CALLS = isFull ? 1_000 : 300;

/** A port without a server. */
const PORT = await onFreePorts(1, async ([port = 0]) => port);
const node = { host: "127.0.0.1", port: PORT };
const REASON = `connect ECONNREFUSED 127.0.0.1:${PORT}`;

interface Opened {
  readonly store: Store;
  close(): unknown;
}

function ioredis(client: Redis | Cluster): Opened {
  client.on("error", () => {});
  return { store: redisStore({ client }), close: () => client.disconnect() };
}

function nodeRedis(options: object = {}): ReturnType<typeof createClient> {
  const client = createClient({ socket: node, ...options });
  client.on("error", () => {});
  client.connect().catch(() => {});
  return client as ReturnType<typeof createClient>;
}

const stores: Readonly<Record<string, () => Opened>> = {
  ioredis: () => ioredis(new Redis(node)),
  "ioredis without a queue": () => ioredis(new Redis({ ...node, enableOfflineQueue: false })),
  "ioredis that gives up": () => ioredis(new Redis({ ...node, maxRetriesPerRequest: 1 })),
  "ioredis Cluster": () => ioredis(new Cluster([node])),
  "ioredis Sentinel": () => ioredis(new Redis({ sentinels: [node], name: "main" })),
  "node-redis": () => {
    const client = nodeRedis();
    return { store: redisStore({ client }), close: () => client.destroy() };
  },
  "node-redis Sentinel": () => {
    const client = createSentinel({ name: "main", sentinelRootNodes: [node] });
    client.on("error", () => {});
    const store = redisStore({ client });
    client.connect().catch(() => {});
    return { store, close: () => client.destroy() };
  },
  "node-redis without a queue": () => {
    const client = nodeRedis({ disableOfflineQueue: true });
    return { store: redisStore({ client }), close: () => client.destroy() };
  },
  redlock: () => {
    const clients = [1, 2, 3].map(() => nodeRedis());
    const store = redlockStore({ clients, nodeNames: ["a", "b", "c"] });
    return { store, close: () => clients.map((client) => client.destroy()) };
  },
  etcd: () => ({ store: etcdStore({ endpoints: [`127.0.0.1:${PORT}`] }), close: () => {} }),
};

test.concurrent.each(Object.keys(stores))(
  "%s: the error and the event of an acquire give the reason",
  async (name) => {
    const opened = stores[name]?.() as Opened;
    const locks = new Holdfast(opened.store, { storeTimeoutMs: 1_500 });
    const heard: unknown[] = [];
    const hear = (message: unknown): void => {
      const event = message as { readonly name: string; readonly error?: unknown };
      if (event.name === name) heard.push(event.error);
    };
    subscribe(`tracing:${channels.acquire}:error`, hear);
    try {
      const error = await locks
        .mutex(name)
        .tryAcquire()
        .then(String, (reason) => reason);
      expect(error).toBeInstanceOf(StoreError);
      expect(error.message).toContain(`Lock "${name}": `);
      expect(error.message).toContain(REASON);
      expect(causes(error)).toContain(REASON);
      expect(heard).toEqual([error]);
    } finally {
      unsubscribe(`tracing:${channels.acquire}:error`, hear);
      await locks.close();
      await opened.close();
    }
  },
  20_000,
);

/** Many calls fail at once, and keep the event loop busy while the reason is looked for. */
test.each(Object.keys(stores))(
  "%s: the errors of many acquires at once give the reason",
  async (name) => {
    const opened = stores[name]?.() as Opened;
    const locks = new Holdfast(opened.store);
    const call = async (options: AcquireOptions, at: number): Promise<string> => {
      const trying = locks.mutex(`m${at}`).tryAcquire(options);
      const error = await trying.then(String, (reason) => reason);
      expect(error).toBeInstanceOf(StoreError);
      return error.message.replace(`"m${at}"`, '"m"');
    };
    try {
      const calls = [{}, { waitMs: 0 }, { waitMs: 300 }].flatMap((options) =>
        Array.from({ length: CALLS }, (_, at) => call(options, at)),
      );
      const messages = new Set(await Promise.all(calls));
      expect([...messages].filter((message) => !message.includes(REASON))).toEqual([]);
    } finally {
      await locks.close();
      await opened.close();
    }
  },
  60_000,
);

test.concurrent.each(["ioredis", "node-redis", "redlock", "etcd"])(
  "%s: inspect and list give the reason",
  async (name) => {
    const opened = stores[name]?.() as Opened;
    const locks = new Holdfast(opened.store);
    try {
      const looks = [locks.inspect("x"), locks.findDeadlocks(), locks.mutex("x").isHeld()];
      for (const look of await Promise.allSettled(looks)) {
        expect(look).toMatchObject({ status: "rejected" });
        const { reason } = look as PromiseRejectedResult;
        expect(reason).toBeInstanceOf(StoreError);
        expect(reason.message).toContain(REASON);
      }
    } finally {
      await locks.close();
      await opened.close();
    }
  },
  20_000,
);

test.concurrent.each([
  `redis://127.0.0.1:${PORT}`,
  `redis+cluster://127.0.0.1:${PORT}`,
  `redis+sentinel://127.0.0.1:${PORT}/main`,
])(
  "%s: connect gives the reason",
  async (url) => {
    const error = await connect(url).then(String, (reason) => reason);
    expect(error).toBeInstanceOf(StoreError);
    expect(error.message).toContain(REASON);
  },
  20_000,
);

test("a plain client of a Cluster is told at once that it needs a Cluster client", async () => {
  await using cluster = await startRedisCluster();
  const answers = await Promise.all(
    cluster.urls.flatMap((url) => [
      messageByIoredis(new Redis(url)),
      messageByNodeRedis(createClient({ url }) as ReturnType<typeof createClient>),
    ]),
  );
  // Only the node with the slot of this namespace answers; all other nodes redirect.
  const refused = answers.filter((answer) => answer !== "taken");
  expect(refused.length).toBe(answers.length - 2);
  for (const message of refused) {
    expect(message).toMatch(/This server is part of a Cluster \(MOVED .*use a Cluster client/);
  }
}, 60_000);

async function messageByIoredis(client: Redis): Promise<string> {
  const message = await messageBy(redisStore({ client }));
  client.disconnect();
  return message;
}

async function messageByNodeRedis(client: ReturnType<typeof createClient>): Promise<string> {
  await client.connect();
  const message = await messageBy(redisStore({ client }));
  client.destroy();
  return message;
}

async function messageBy(store: Store): Promise<string> {
  await using locks = new Holdfast(store);
  try {
    await locks.mutex("x").run(() => {});
    return "taken";
  } catch (error) {
    expect(error).toMatchObject({ retryable: false, outcome: "not_applied" });
    return (error as Error).message;
  }
}

/** The messages of all causes. */
function causes(error: Error): string {
  return error.cause instanceof Error ? `${error.cause.message} ${causes(error.cause)}` : "";
}
