import { expect, it } from "vitest";
import { type EtcdServer, startEtcd, startEtcdCluster } from "./etcd.js";
import { isAlive } from "./process-state.js";

const key = Buffer.from("a").toString("base64");

async function valueAt(server: EtcdServer): Promise<string | undefined> {
  const reply = (await server.post("/v3/kv/range", { key })) as { kvs?: { value: string }[] };
  return reply.kvs?.[0]?.value;
}

// Without HOLDFAST_SERVERS the PATH decides, and any version is fine.
const [, version] = /\betcd-([\d.]+)/.exec(process.env.HOLDFAST_SERVERS ?? "") ?? [];
it.runIf(version)("is the server that HOLDFAST_SERVERS names", async () => {
  await using etcd = await startEtcd();
  const status = (await etcd.post("/v3/maintenance/status")) as { version: string };
  expect(`${status.version}.`).toMatch(new RegExp(`^${version}\\.`));
});

it("keeps its data over a crash, unless told otherwise", async () => {
  const etcd = await startEtcd();
  const value = Buffer.from("kept").toString("base64");
  await etcd.post("/v3/kv/put", { key, value });
  await etcd.restart({ keepData: true });
  expect(await valueAt(etcd)).toBe(value);
  await etcd.restart({ keepData: false });
  expect(await valueAt(etcd)).toBeUndefined();
  const { pid } = etcd;
  await etcd.close();
  expect(isAlive(pid)).toBe(false);
});

it("elects another leader while the old one is paused", async () => {
  await using cluster = await startEtcdCluster(3);
  const old = await cluster.leader();
  await old.pause();
  const others = cluster.members.filter((member) => member !== old);
  const leader = await cluster.leader(others);
  expect(leader).not.toBe(old);
  const value = Buffer.from("new").toString("base64");
  await leader.post("/v3/kv/put", { key, value });

  old.resume();
  await cluster.leader();
  expect(await valueAt(old)).toBe(value);
  await old.kill();
  await old.start();
  expect(await valueAt(old)).toBe(value);
});
