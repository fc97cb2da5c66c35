/**
 * A renewal whose reply alone is lost. The proxies of the harnesses can only break the whole
 * connection with it. Here the client itself withholds the reply.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, it } from "vitest";
import { conformance, type Fault, type Harness } from "../../src/conformance/index.js";
import type { Store } from "../../src/contract/store.js";
import { redisStore } from "../../src/stores/redis/index.js";
import { redlockStore } from "../../src/stores/redlock/index.js";
import { redisHarness } from "../redis/harness.js";
import { redlockHarness } from "../redlock/harness.js";
import { type RedisServer, startRedis } from "../servers/redis.js";

const TITLE = "a renewal whose reply is lost is soon repeated and keeps the lease";

const servers: RedisServer[] = [];
const clients: Redis[] = [];

beforeAll(async () => {
  servers.push(...(await Promise.all([1, 2, 3].map(() => startRedis()))));
});
afterAll(async () => {
  for (const client of clients) client.disconnect();
  await Promise.all(servers.map((server) => server.close()));
});

function open({ port }: RedisServer): Redis {
  const client = new Redis(port, "127.0.0.1");
  clients.push(client);
  return client;
}

/**
 * The next script of the client takes effect, but its reply never arrives. A script that the server
 * does not know yet is refused, and sent again.
 */
function loseNextReply(client: Redis): Promise<void> {
  const { call } = client;
  return new Promise((resolve) => {
    client.call = ((...args: [string, ...string[]]) => {
      const answer = call.apply(client, args);
      if (!args[0].startsWith("eval")) return answer;
      return answer.then(() => {
        client.call = call;
        resolve();
        return new Promise(() => {});
      });
    }) as Redis["call"];
  });
}

/** No other client uses the store, so the next request of a holder is its renewal. */
function losing(store: Store, own: readonly Redis[]): { store: Store; loseReply(): Fault } {
  const loseReply = (): Fault => ({ struck: Promise.all(own.map(loseNextReply)).then(() => {}) });
  return { store, loseReply };
}

function runCase(harness: Harness): void {
  const { title, skip, run } = conformance(harness).find(
    (one) => one.title === TITLE,
  ) as ReturnType<typeof conformance>[number];
  it(title, (context) => (skip === null ? run() : context.skip(skip)));
}

describe.concurrent("redis", () => {
  let shared: Redis;
  beforeAll(() => {
    shared = open(servers[0] as RedisServer);
  });
  runCase({
    ...redisHarness({
      masters: async () => servers.slice(0, 1),
      url: (namespace) => `redis://127.0.0.1:${servers[0]?.port}?namespace=${namespace}`,
      client: () => shared,
    }),
    faults: {
      kinds: ["loseReply"],
      async open(namespace) {
        const client = open(servers[0] as RedisServer);
        return losing(redisStore({ client, namespace }), [client]);
      },
    },
  });
});

describe.concurrent("redlock", () => {
  let shared: Redis[];
  beforeAll(() => {
    shared = servers.map(open);
  });
  const nodeNames = (): string[] => servers.map(({ port }) => `127.0.0.1:${port}`);
  runCase({
    ...redlockHarness(
      3,
      () => servers,
      () => shared,
      () => Promise.reject(new Error("not used here")),
    ),
    faults: {
      kinds: ["loseReply"],
      async open(namespace) {
        const own = servers.map(open);
        const options = { clients: own, nodeNames: nodeNames(), namespace } as const;
        return losing(redlockStore({ ...options, bootstrap: "now" }), own);
      },
    },
  });
});
