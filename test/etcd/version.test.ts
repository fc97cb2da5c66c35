import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { channels, connect } from "../../src/index.js";
import { mayEndLiveLeases } from "../../src/stores/etcd/client.js";
import { type EtcdServer, startEtcd } from "../servers/etcd.js";
import { examined } from "../stores/examined.js";
import { etcdUrl } from "./harness.js";

let server: EtcdServer;
beforeAll(async () => {
  server = await startEtcd();
});
afterAll(() => server.close());

async function versionOf(): Promise<string> {
  const { version } = (await server.post("/v3/maintenance/status")) as { version: string };
  return version;
}

test("connect warns of a version that may end live leases, and of no other", async () => {
  const version = await versionOf();
  const isFaulty = mayEndLiveLeases(version);
  const published: unknown[] = [];
  const lines: Error[] = [];
  const onEvent = (event: unknown): void => void published.push(event);
  const onLine = (warning: Error): void => void lines.push(warning);
  subscribe(channels.warning, onEvent);
  process.on("warning", onLine);
  for (const namespace of ["a", "b"]) {
    const told = isFaulty && namespace === "a" ? once(process, "warning") : null;
    const locks = await connect(etcdUrl([server.port], namespace).href);
    await told;
    if (isFaulty) await expect.poll(() => published).toHaveLength(namespace === "a" ? 1 : 2);
    // Its use says no more.
    await locks.mutex("m").run(() => {});
    await locks.close();
  }
  process.off("warning", onLine);
  unsubscribe(channels.warning, onEvent);
  const warnings = isFaulty ? ["a", "b"] : [];
  const code = "HF_ETCD_ENDS_LIVE_LEASES";
  expect(published).toEqual(
    warnings.map((namespace) => ({
      store: "etcd",
      namespace,
      code,
      message: expect.stringContaining(`etcd ${version} may end live leases`),
      remedy: expect.stringContaining("Upgrade etcd to 3.5.13"),
    })),
  );
  // One line for all stores of a process.
  const found = lines.filter(({ name }) => name === "HoldfastWarning");
  expect(found).toHaveLength(isFaulty ? 1 : 0);
  const { severity } = (await examined(await connect(etcdUrl([server.port]).href))).of(
    "etcd/version",
  );
  expect(severity).toBe(isFaulty ? "warning" : "ok");
  if (isFaulty) expect(found[0]).toMatchObject({ code, message: expect.stringMatching(/^etcd 3/) });
});
