/** Clusters that are configured wrongly on purpose, and good ones. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { Etcd3 } from "etcd3";
import { expect, test, vi } from "vitest";
import { connect } from "../../src/api/connect.js";
import { Holdfast } from "../../src/api/holdfast.js";
import { mayEndLiveLeases } from "../../src/stores/etcd/client.js";
import { etcdStore } from "../../src/stores/etcd/index.js";
import { startProxy } from "../faults/proxy.js";
import { startRewritingProxy } from "../faults/rewriting-proxy.js";
import { type EtcdServer, startEtcd, startEtcdCluster } from "../servers/etcd.js";
import { waitUntil } from "../servers/wait-until.js";
import { type Examined, examined, expectFound } from "../stores/examined.js";

const run = promisify(execFile);

const examine = async (url: string, ttlMs?: number): Promise<Examined> =>
  examined(await connect(url), ttlMs);

const urlOf = (...servers: readonly EtcdServer[]): string =>
  `etcd://${servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;

const ctl = (server: EtcdServer, ...args: string[]): Promise<unknown> =>
  run("etcdctl", [`--endpoints=127.0.0.1:${server.port}`, ...args], {
    env: { ...process.env, ETCDCTL_API: "3" },
  });

/** Nothing is wrong but the version of the server, where that may end live leases. */
function expectGoodBut(one: Examined): void {
  const [, version = ""] = /etcd ([\d.]+)\.$/.exec(one.of("etcd/version").what) ?? [];
  const bad = mayEndLiveLeases(version) ? ["etcd/version"] : [];
  expect(one.ids("warning", "danger")).toEqual(bad);
}

test.concurrent("three members are good, also by endpoints, and nothing is written", async () => {
  await using cluster = await startEtcdCluster();
  const url = urlOf(...cluster.members);
  const found = await examine(url);
  expectGoodBut(found);
  expect(found.ids("skipped")).toEqual([]);
  const endpoints = cluster.members.map(({ port }) => `127.0.0.1:${port}`);
  const byEndpoints = await examined(new Holdfast(etcdStore({ endpoints })));
  expectGoodBut(byEndpoints);
  expect(byEndpoints.ids("skipped")).toEqual([]);
  const client = new Etcd3({ hosts: [...cluster.urls] });
  const { header } = await client.getAll().exec();
  expect(header.revision).toBe("1");
  client.close();
  expectFound(await examine(url, 3_000), "etcd/ttl", "warning");
  const ids = await Promise.all(cluster.members.map(async (one) => (await one.view()).id));
  for (let move = 0; move < 12; move += 1) {
    const leader = await cluster.leader();
    const next = ids[(cluster.members.indexOf(leader) + 1) % ids.length] ?? "";
    await ctl(leader, "move-leader", BigInt(next).toString(16));
  }
  await cluster.leader();
  expectFound(await examine(url), "etcd/elections", "warning");
  const [gone, other, last] = cluster.members;
  await gone?.kill();
  if (!other || !last) throw new Error("There are three members.");
  await cluster.leader([other, last]);
  expectFound(await examine(url), "etcd/reachable", "warning");
  await other.kill();
  // The gateway leaves out a leader that is 0.
  const isAlone = async (): Promise<boolean> => ((await last.view()).leader ?? "0") === "0";
  await waitUntil(isAlone, { what: "the last member knows no leader" });
  expectFound(await examine(urlOf(last)), "etcd/leader", "danger");
});

test.concurrent("a lone member without space is found", async () => {
  await using server = await startEtcd({ args: ["--quota-backend-bytes", `${1024 * 1024}`] });
  const value = Buffer.alloc(400_000, "x").toString("base64");
  const put = (name: string): Promise<unknown> =>
    server.post("/v3/kv/put", { key: Buffer.from(name).toString("base64"), value });
  await put("large");
  expectFound(await examine(urlOf(server)), "etcd/members", "warning");
  for (let more = 0; more < 4; more += 1) {
    await put(`large${more}`).catch(() => {});
  }
  // The members agree on an alarm after the write that was refused.
  const isFound = async (): Promise<void> => {
    const found = await examine(urlOf(server));
    expectFound(found, "etcd/alarms", "danger");
    expectFound(found, "etcd/quota", "warning");
  };
  await vi.waitFor(isFound, { timeout: 60_000 });
});

test.concurrent("an old server is found, and a long way to it", async () => {
  await using server = await startEtcd();
  const { version } = (await server.post("/v3/maintenance/status")) as { version: string };
  const old = version.replace(/^3\.\d/, "3.3");
  await using proxy = await startRewritingProxy(server.port, version, old);
  expectFound(await examine(`etcd://127.0.0.1:${proxy.port}`), "etcd/version", "danger");
  await using slow = await startProxy({ targetPort: server.port });
  slow.delay("replies", 20);
  expectFound(await examine(`etcd://127.0.0.1:${slow.port}`, 50), "etcd/round-trip", "warning");
});

test.concurrent("a slow disk is found", async (context) => {
  await using server = await startEtcd();
  const fault = "inject=fdatasync,fsync:delay_enter=150000";
  const strace = spawn("strace", ["-f", "-p", `${server.pid}`, "-o", "/dev/null", "-e", fault]);
  const failed = once(strace, "error").then(() => "it is not installed");
  const refused = once(strace, "exit").then(() => "it may not trace other processes");
  try {
    const attached = once(strace.stderr, "data").then(() => null);
    const why = await Promise.race([failed, refused, attached]);
    if (why !== null) return context.skip(`strace is needed: ${why}`);
    for (let put = 0; put < 10; put += 1) {
      await server.post("/v3/kv/put", { key: btoa("k"), value: btoa(`${put}`) });
    }
    expectFound(await examine(urlOf(server)), "etcd/fsync", "warning");
  } finally {
    strace.kill();
    await Promise.race([failed, refused]);
  }
});

test.concurrent("a user without rights is found; the least rights are enough", async () => {
  await using server = await startEtcd();
  await ctl(server, "user", "add", "root:secret");
  await ctl(server, "user", "grant-role", "root", "root");
  await ctl(server, "user", "add", "app:secret");
  await ctl(server, "role", "add", "locks");
  const permission = ["grant-permission", "locks", "--prefix=true", "readwrite"];
  await ctl(server, "role", ...permission, "holdfast:in/app/");
  await ctl(server, "user", "grant-role", "app", "locks");
  await ctl(server, "auth", "enable");
  const url = (namespace: string): string =>
    `etcd://app:secret@127.0.0.1:${server.port}?namespace=${namespace}`;
  const least = await examine(url("app"));
  expect(least.ids("danger")).toEqual([]);
  expect(least.of("etcd/rights").severity).toBe("ok");
  expectFound(await examine(url("other")), "etcd/rights", "danger");
});

test.concurrent("a server that is away is no finding", async () => {
  await using server = await startEtcd();
  const locks = await connect(urlOf(server));
  await server.kill();
  await expect(locks.examine()).rejects.toMatchObject({ code: "HF_STORE" });
  await locks.close();
});
