/** Servers that are slow or fall silent: the doctor ends in time, and claims nothing. */
import { expect, test } from "vitest";
import { connect } from "../../src/connect.js";
import type { Examination } from "../../src/examination.js";
import { startProxy } from "../faults/proxy.js";
import { startEtcd } from "../servers/etcd.js";
import { startPostgres } from "../servers/postgres.js";
import { startRedis } from "../servers/redis.js";
import { startZookeeper, zookeeperMissing } from "../servers/zookeeper.js";

/** An examination ends within 12 s; the rest is for a busy machine. */
const LIMIT_MS = 25_000;

interface Silent extends AsyncDisposable {
  readonly port: number;
}

const zookeeper = (): Promise<Silent> => startZookeeper();
const SERVERS: readonly (readonly [string, () => Promise<Silent>])[] = [
  ["redis://127.0.0.1:PORT", startRedis],
  ["redlock://127.0.0.1:PORT,localhost:PORT?bootstrap=now", startRedis],
  ["postgres://postgres@127.0.0.1:PORT/postgres", startPostgres],
  ["etcd://127.0.0.1:PORT", startEtcd],
  ...(zookeeperMissing() ? [] : [["zookeeper://127.0.0.1:PORT/locks", zookeeper] as const]),
];

test.concurrent("a server that is slow is examined as far as the time allows", async () => {
  await using server = await startRedis();
  await using proxy = await startProxy({ targetPort: server.port });
  const locks = await connect(`redis://127.0.0.1:${proxy.port}`);
  try {
    proxy.delay("replies", 900);
    const startMs = performance.now();
    const { findings } = await locks.examine({ ttlMs: 2_000 });
    expect(performance.now() - startMs).toBeLessThan(LIMIT_MS);
    expect(findings[0]).toMatchObject({ id: "redis/version", severity: "ok" });
    const last = findings.find(({ id }) => id === "redis/round-trip");
    expect(last).toMatchObject({ severity: "skipped", what: expect.stringContaining("too long") });
  } finally {
    await locks.close();
  }
});

test.concurrent.each(SERVERS)("%s that falls silent", async (url, start) => {
  await using server = await start();
  await using proxy = await startProxy({ targetPort: server.port });
  const locks = await connect(url.replaceAll("PORT", `${proxy.port}`));
  try {
    await (await locks.mutex("m").acquire()).release();
    proxy.blackhole("replies");
    const startMs = performance.now();
    const end = await locks.examine({ ttlMs: 10_000 }).catch((error: unknown) => error);
    expect(performance.now() - startMs).toBeLessThan(LIMIT_MS);
    if (end instanceof Error)
      return expect(end).toMatchObject({ code: expect.stringMatching(/^HF_STORE/) });
    const { findings } = end as Examination;
    const asked = findings.filter(({ id }) => /version|round-trip|messages|rights/.test(id));
    expect(asked.filter(({ severity }) => severity === "ok")).toEqual([]);
  } finally {
    await proxy.heal();
    await locks.close();
  }
});
