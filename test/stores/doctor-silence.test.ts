/** Servers that are slow or fall silent: the doctor ends in time, and claims nothing. */
import { expect, test } from "vitest";
import { connect } from "../../src/api/connect.js";
import type { Examination } from "../../src/contract/examination.js";
import { startProxy } from "../faults/proxy.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { startEtcd } from "../servers/etcd.js";
import { startPostgres } from "../servers/postgres.js";
import { startRedis } from "../servers/redis.js";
import { closeAll, type ServerProcess, startAll } from "../servers/server-process.js";
import { startZookeeper, zookeeperMissing } from "../servers/zookeeper.js";

/** An examination ends within 12 s, and after the reply that is under way then. */
const LIMIT_MS = 13_000;
const TTL_MS = 10_000;

type Start = () => Promise<ServerProcess & { readonly port: number }>;

const zookeeper: Start = () => startZookeeper();
/** The URL with a place for each address, and how to start a server. */
const SERVERS: readonly (readonly [string, Start])[] = [
  ["redis://HERE", startRedis],
  ["redlock://HERE,HERE?bootstrap=now", startRedis],
  ["postgres://postgres@HERE/postgres", startPostgres],
  ["etcd://HERE", startEtcd],
  ...(zookeeperMissing() ? [] : [["zookeeper://HERE/locks", zookeeper] as const]),
];

test.concurrent("a server that is slow is examined as far as the time allows", async () => {
  await using server = await startRedis();
  await using proxy = await startProxy({ targetPort: server.port });
  const locks = await connect(`redis://127.0.0.1:${proxy.port}`);
  try {
    proxy.delay("replies", 900);
    const watch = new Stopwatch();
    const { findings } = await locks.examine({ ttlMs: 2_000 });
    watch.expectLessThan(LIMIT_MS);
    expect(findings[0]).toMatchObject({ id: "redis/version", severity: "ok" });
    const last = findings.find(({ id }) => id === "redis/round-trip");
    expect(last).toMatchObject({ severity: "skipped", what: expect.stringContaining("too long") });
  } finally {
    await locks.close();
  }
});

test.concurrent.each(SERVERS)("%s that falls silent", async (form, start) => {
  const servers = await startAll(
    form
      .split("HERE")
      .slice(1)
      .map(() => start()),
  );
  const proxies = await Promise.all(
    servers.map(({ port: targetPort }) => startProxy({ targetPort })),
  );
  const url = proxies.reduce((text, { port }) => text.replace("HERE", `127.0.0.1:${port}`), form);
  const locks = await connect(url, { ttlMs: TTL_MS });
  try {
    await (await locks.mutex("m").acquire()).release();
    for (const proxy of proxies) proxy.blackhole("replies");
    const watch = new Stopwatch();
    const end = await locks.examine().catch((error: unknown) => error);
    watch.expectLessThan(LIMIT_MS);
    if (end instanceof Error) {
      expect(end).toMatchObject({ code: expect.stringMatching(/^HF_STORE/) });
      return;
    }
    const { findings } = end as Examination;
    const asked = findings.filter(({ id }) => /version|round-trip|messages|rights/.test(id));
    expect(asked.filter(({ severity }) => severity === "ok")).toEqual([]);
  } finally {
    await Promise.all(proxies.map((proxy) => proxy.heal()));
    await locks.close();
    await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    await closeAll(servers);
  }
});
