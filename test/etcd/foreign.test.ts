/** Programs besides Holdfast in the same etcd: etcdctl, Go's concurrency package, and others. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Etcd3 } from "etcd3";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { type EtcdServer, startEtcd } from "../servers/etcd.js";
import { waitUntil } from "../servers/wait-until.js";
import { untilWaiting } from "../stores/trial.js";
import { EtcdTrial } from "./trial.js";

const ETCDCTL = "etcdctl";

const trial = new EtcdTrial();
afterEach(() => trial.close());

describe("a server that other programs use", () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(() => server.close());

  const etcdctl = (...args: string[]) =>
    spawn(ETCDCTL, [`--endpoints=127.0.0.1:${server.port}`, ...args], {
      env: { ...process.env, ETCDCTL_API: "3" },
      stdio: ["pipe", "pipe", "inherit"],
    });

  it("and etcdctl lock exclude each other, in the order of arrival", async () => {
    const locks = await trial.open([server.port]);
    const lease = await locks.mutex("ctl/lock").acquire();
    const child = etcdctl("lock", "ctl/lock");
    await untilWaiting(locks, "ctl/lock");
    const behind = locks.mutex("ctl/lock").acquire();
    await untilWaiting(locks, "ctl/lock", 2);
    await lease.release();
    const [key] = (await once(child.stdout, "data")) as [Buffer];
    assert.match(key.toString(), /^ctl\/lock\/[0-9a-f]+\n/, "etcdctl prints its key once it holds");
    assert.equal(await locks.mutex("ctl/lock").tryAcquire(), null);
    assert.equal(await locks.readWrite("ctl/lock").read.tryAcquire(), null);
    const { holders } = await locks.inspect("ctl/lock");
    assert.deepEqual([holders.length, holders[0]?.mode], [1, "exclusive"]);
    child.kill("SIGINT");
    const next = await behind;
    assert.ok(next.token > lease.token);
    assert.ok(next.token > (holders[0]?.token ?? 0n));
    await next.release();
  });

  it("campaigns against etcdctl elect", async () => {
    const locks = await trial.open([server.port]);
    const lease = await locks.election("seat").campaign({ meta: { round: 1 } });
    const child = etcdctl("elect", "holdfast:election/seat", "a proposal");
    await waitUntil(async () => (await locks.inspect("seat", "election")).waiters.length === 1, {
      what: "etcdctl campaigns",
    });
    await lease.release();
    await once(child.stdout, "data");
    const leader = await locks.election("seat").leader();
    assert.equal(leader?.meta.text, "a proposal");
    child.kill("SIGINT");
    await (await locks.election("seat").campaign()).release();
  });

  it("treats an unreadable entry as a holder, and keeps longer names apart", async () => {
    const locks = await trial.open([server.port]);
    const client = new Etcd3({ hosts: [server.url] });
    try {
      await client.put("odd/what is this").value("");
      assert.equal(await locks.mutex("odd").tryAcquire(), null);
      await client.delete().key("odd/what is this").exec();
      const below = await locks.mutex("odd/below").acquire();
      const lease = await locks.mutex("odd").tryAcquire();
      assert.ok(lease, "a longer name is another lock");
      await Promise.all([lease.release(), below.release()]);
    } finally {
      client.close();
    }
  });

  it("revokes lock entries only, not a key of another program in the queue", async () => {
    const locks = await trial.open([server.port]);
    const client = new Etcd3({ hosts: [server.url] });
    const lease = client.lease(60);
    const leaseHex = BigInt(await lease.grant()).toString(16);
    const holderOf = async (name: string): Promise<bigint> =>
      (await locks.inspect(name)).holders[0]?.token ?? 0n;
    try {
      // Another form; Go's form without a lease; bound to another lease than it names; the form of
      // Holdfast, but bound to a lease that is not a session of Holdfast.
      await client.put("orders/config").value("kept");
      await client.put("parcels/2a").value("kept");
      await lease.put("carts/2a").value("kept");
      await lease.put("bills/2a.x.1.-.0-0").value("kept");
      for (const key of ["orders/config", "parcels/2a", "carts/2a", "bills/2a.x.1.-.0-0"]) {
        const [name = ""] = key.split("/");
        const token = await holderOf(name);
        assert.equal(await locks.mutex(name).tryAcquire(), null);
        await assert.rejects(locks.revoke(name, { token, reason: "stuck" }), (error: Error) => {
          assert.equal((error as { code?: string }).code, "HF_UNSUPPORTED");
          return error.message.includes(JSON.stringify(key));
        });
        assert.equal(await client.get(key).string(), "kept");
      }
      // An entry of Go's concurrency package.
      await lease.put(`rooms/${leaseHex}`).value("");
      const token = await holderOf("rooms");
      assert.equal(await locks.revoke("rooms", { token, reason: "stuck" }), true);
      assert.equal(await client.get(`rooms/${leaseHex}`).string(), null);
      // An entry of Holdfast that is now bound to another session.
      const moved = await locks.mutex("halls").acquire({ ttlMs: 5_000 });
      await moved.renew(20_000);
      assert.equal(await locks.revoke("halls", { token: moved.token, reason: "stuck" }), true);
      await waitUntil(() => moved.state === "lost", { what: "the holder is told" });
    } finally {
      await lease.revoke();
      await Promise.all(["orders/config", "parcels/2a"].map((key) => client.delete().key(key)));
      client.close();
    }
  });
});
