/** Nodes that are chosen or configured wrongly on purpose, and good ones. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { type RedlockStoreOptions, redlockStore } from "../../src/stores/redlock/index.js";
import { startProxy } from "../faults/proxy.js";
import { makeClocks } from "../servers/clock-shift.js";
import { type RedisServer, startRedis, startReplica } from "../servers/redis.js";
import { closeAll, startAll } from "../servers/server-process.js";
import { type Examined, examined, expectFound, expectGood } from "../stores/examined.js";

/** As on machines of their own: each has an address of its own. */
const hostOf = (at: number): string => `127.0.0.${at + 1}`;

const clocks = makeClocks();
const clock = clocks?.clock("node");

let servers: RedisServer[];
beforeAll(async () => {
  const starts = Array.from({ length: 5 }, (_, at) => {
    const args = ["--bind", "127.0.0.1", ...(at === 0 ? [] : [hostOf(at)])];
    return startRedis({ args, ...(at === 4 && clock ? { env: clock.env } : {}) });
  });
  servers = await startAll(starts);
});
afterAll(async () => {
  await closeAll(servers);
  clocks?.end();
});

interface Node {
  readonly host: string;
  readonly port: number;
  readonly username?: string;
  readonly password?: string;
}

const nodesAt = (...places: number[]): Node[] =>
  places.map((at) => ({ host: hostOf(at), port: servers[at]?.port ?? 0 }));

async function examine(
  nodes: readonly Node[],
  options: Partial<RedlockStoreOptions> = {},
  ttlMs?: number,
): Promise<Examined> {
  const clients = nodes.map((node) => new Redis(node));
  for (const client of clients) client.on("error", () => {});
  try {
    const [client] = clients;
    const given = client && clients.length === 1 ? { client } : { clients };
    return await examined(new Holdfast(redlockStore({ ...given, ...options })), ttlMs);
  } finally {
    for (const client of clients) client.disconnect();
  }
}

test("five independent nodes are good, and none of them is changed", async () => {
  const found = await examine(nodesAt(0, 1, 2, 3, 4));
  expectGood(found);
  expect(found.ids("skipped")).toEqual([]);
  expect(found.ids("note")).toEqual(["redlock/markers"]);
  for (const server of servers) expect(await server.ask("DBSIZE")).toBe(0);
  expect(found.survives("A node restarts without its data")).toBe(true);
});

test.concurrent("too few nodes, an even number and nodes on one host are found", async () => {
  expectFound(await examine(nodesAt(0, 1)), "redlock/count", "warning");
  expectFound(await examine(nodesAt(0, 1, 2, 3)), "redlock/count", "note");
  const oneHost = nodesAt(0, 1, 2).map(({ port }) => ({ host: "127.0.0.1", port }));
  expectFound(await examine(oneHost), "redlock/independence", "warning");
});

test.concurrent("nodes that are away are found", async () => {
  await using spare = await startRedis();
  const away = { host: "127.0.0.1", port: spare.port };
  await spare.stop();
  expectFound(await examine([...nodesAt(1, 2), away]), "redlock/nodes", "warning");
  const gone = await examine([...nodesAt(1), away, { ...away, host: "127.0.0.9" }]);
  expectFound(gone, "redlock/nodes", "danger");
  await expect(examine([away, { ...away, host: "127.0.0.9" }])).rejects.toMatchObject({
    code: "HF_STORE_QUORUM",
  });
});

test.concurrent("nodes that are slower than nodeTimeoutMs are found", async () => {
  const targets = servers.slice(0, 2);
  const proxies = await Promise.all(targets.map(({ port }) => startProxy({ targetPort: port })));
  for (const proxy of proxies) proxy.delay("replies", 80);
  const slow = proxies.map(({ port }) => ({ host: "127.0.0.1", port }));
  const found = await examine([...slow, ...nodesAt(2)], { nodeTimeoutMs: 50 });
  expectFound(found, "redlock/node-timeout", "warning");
  await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
});

test.concurrent("a single server that forgets, refuses scripts or is slow is found", async () => {
  await using lone = await startRedis();
  const node = { host: "127.0.0.1", port: lone.port };
  expectFound(await examine([node]), "redlock/start", "note");
  const rules = ["~*", "&*", "+@all", "-eval", "-evalsha"];
  await lone.ask("ACL", "SETUSER", "mute", "reset", "on", ">secret", ...rules);
  const user = { username: "mute", password: "secret" };
  expectFound(await examine([{ ...node, ...user }]), "redlock/scripts", "danger");
  await using slow = await startProxy({ targetPort: lone.port });
  slow.delay("replies", 80);
  const late = await examine([{ ...node, port: slow.port }], { nodeTimeoutMs: 50 });
  expectFound(late, "redlock/round-trip", "warning");
});

test("one server that is named twice, and a replica among the nodes, are found", async () => {
  const [first] = servers;
  if (!first) throw new Error("There are five servers.");
  const twice = [...nodesAt(1, 2), { host: "127.0.0.1", port: servers[1]?.port ?? 0 }];
  expectFound(await examine(twice), "redlock/independence", "danger");
  await using replica = await startReplica(first);
  const found = await examine([...nodesAt(0, 1), { host: "127.0.0.1", port: replica.port }]);
  expectFound(found, "redis/role", "danger");
  expectFound(found, "redlock/independence", "danger");
  expect(found.of("redis/role").what).toContain(`(127.0.0.1:${replica.port})`);
});

test("nodes that evict keys or belong to another set are found, and long leases", async () => {
  const clients = nodesAt(0, 1, 2).map((node) => new Redis(node));
  const locks = new Holdfast(redlockStore({ clients, bootstrap: "now" }));
  await (await locks.mutex("m").acquire()).release();
  await locks.close();
  for (const client of clients) client.disconnect();
  expect((await examine(nodesAt(0, 1, 2))).of("redlock/markers").severity).toBe("ok");
  await servers[3]?.ask("CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru");
  const found = await examine(nodesAt(2, 3, 4), { maxTtlMs: 1_000 }, 2_000);
  expectFound(found, "redlock/markers", "danger");
  expectFound(found, "redis/eviction", "danger");
  expectFound(found, "redlock/lease-length", "note");
});

test("a clock that is apart from the others is found", async (context) => {
  const server = servers[4];
  if (!clock || !server) return context.skip("a C compiler and LD_PRELOAD are needed");
  await clock.shift(60_000, server);
  expectFound(await examine(nodesAt(1, 3, 4)), "redlock/clock-spread", "warning");
});
