/** Makes every mistake of docs/mistakes.md, and compares the messages with the table. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../src/api/connect.js";
import { Holdfast } from "../../src/api/holdfast.js";
import { fileStore } from "../../src/stores/file/index.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { redisStore } from "../../src/stores/redis/index.js";
import { Workshop } from "../cli/command-line.js";
import { type RedisCluster, startRedisCluster } from "../servers/redis-cluster.js";

const text = readFileSync(join(import.meta.dirname, "../../docs/mistakes.md"), "utf8");
const rows = [...text.matchAll(/^\| `(.*?)`.*? \| (.*) \|$/gm)].map(
  ([, mistake = "", message = ""]) => [mistake, message] as const,
);

const closers: (() => unknown)[] = [];
/** The objects that the mistakes use. */
const given: Record<string, unknown> = {};
let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster();
  closers.push(() => cluster[Symbol.asyncDispose]());
  const usedStore = memoryStore();
  const locks = new Holdfast(usedStore);
  closers.push(() => locks.close());
  await locks.mutex("busy").acquire({ meta: { job: "nightly" } });
  const lease = await locks.mutex("a").acquire();
  await lease.release();
  const work = (): void => {};
  const redis = new Redis({ port: 1 });
  redis.on("error", () => {});
  closers.push(() => redis.disconnect());
  const by = (client: Redis) => {
    const opened = new Holdfast(redisStore({ client }));
    closers.push(() => opened.close());
    return opened.mutex("a");
  };
  const clientOfOneNode = await clientOfOtherNode("{hf:}");
  const stores = { fileStore, memoryStore, redisStore, usedStore };
  const clients = { redis, createClient, clientOfOneNode, by };
  Object.assign(given, { Holdfast, connect, locks, lease, work, ...stores, ...clients });
}, 60_000);

afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

/** A client of a node that does not serve this key. */
async function clientOfOtherNode(key: string): Promise<Redis> {
  for (const url of cluster.urls) {
    const client = new Redis(url);
    closers.push(() => client.disconnect());
    const isServed = await client.exists(key).then(
      () => true,
      () => false,
    );
    if (!isServed) return client;
  }
  throw new Error("every node serves the key");
}

async function messageOf(mistake: string): Promise<string> {
  if (mistake.startsWith("holdfast ")) {
    await using shop = new Workshop();
    const { code, stderr } = await shop.run(mistake.split(" ").slice(1));
    expect(code).toBe(64);
    return stderr.replace(/^holdfast: (.*)\n[\s\S]*$/, "$1");
  }
  const make = new Function(...Object.keys(given), `return ${mistake};`);
  try {
    await make(...Object.values(given));
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("the mistake gives no error");
}

test("there are at least twenty", () => {
  expect(rows.length).toBeGreaterThanOrEqual(20);
});

test.each(rows)(
  "%s",
  async (mistake, message) => {
    const parts = message.split("…").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    expect(await messageOf(mistake)).toMatch(new RegExp(`^${parts.join(".*")}$`));
  },
  20_000,
);
