/**
 * Faults of etcd and its clients. The conformance kit checks the rules of the store; here servers
 * crash, stop, lose connections and run full while clients hold and wait.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Etcd3 } from "etcd3";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { LeaseLostError } from "../../src/errors.js";
import { Holdfast } from "../../src/holdfast.js";
import { makeEtcdStore } from "../../src/stores/etcd/etcd-store.js";
import { openEtcdClient } from "../../src/stores/etcd/etcd-url.js";
import { etcdStore, guard, openEtcdStore } from "../../src/stores/etcd/index.js";
import { startProcess } from "../faults/process.js";
import { startProxy } from "../faults/proxy.js";
import { type EtcdCluster, type EtcdServer, startEtcd, startEtcdCluster } from "../servers/etcd.js";
import { waitUntil } from "../servers/wait-until.js";
import { etcdUrl } from "./etcd-harness.js";
import { faultyEtcdClient } from "./faulty-etcd-client.js";

const isFull = process.env.HOLDFAST_FULL === "1";
const ROUNDS = isFull ? 5 : 1;
const ETCDCTL = "etcdctl";
const STORE_TIMEOUT_MS = 2_000;

const opened: Holdfast[] = [];

async function open(ports: readonly number[], namespace = ""): Promise<Holdfast> {
  const locks = new Holdfast(await openEtcdStore(etcdUrl(ports, namespace)), { ttlMs: 5_000 });
  opened.push(locks);
  return locks;
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
});

/** All keys, and the number of leases. */
async function contents({ url }: EtcdServer): Promise<{ keys: string[]; leases: number }> {
  const client = new Etcd3({ hosts: [url] });
  try {
    const keys = Object.keys(await client.getAll().strings());
    const { leases } = await client.leaseClient.leaseLeases();
    return { keys, leases: leases.length };
  } finally {
    client.close();
  }
}

/** Checks that at most one lease is held at a time; a lost lease counts until its deadline. */
class Inside {
  count = 0;
  turns = 0;
  last = 0n;
  readonly violations: string[] = [];

  async work(locks: Holdfast, name: string, signal?: AbortSignal): Promise<void> {
    const options = { ttlMs: 5_000, ...(signal ? { signal } : {}) };
    const lease = await locks.mutex(name).acquire(options);
    try {
      this.count += 1;
      if (this.count > 1) this.violations.push(`${this.count} at once`);
      if (lease.token <= this.last) this.violations.push(`${lease.token} after ${this.last}`);
      this.last = lease.token;
      await sleep(Math.random() * 4);
      // A lease that was lost meanwhile no longer counts.
      if (lease.state === "held") this.turns += 1;
    } finally {
      this.count -= 1;
      await lease.release();
    }
  }
}

describe("one node", () => {
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

  it("can be closed while it does not answer, and pending calls reject", async () => {
    const client = new Etcd3({ hosts: [server.url] });
    const locks = new Holdfast(makeEtcdStore(client, "silent", () => {}));
    await locks.inspect("m");
    await server.pause();
    try {
      const looks = [locks.inspect("m"), locks.election("m").leader()];
      const ended = Promise.allSettled(looks);
      await locks.close();
      for (const look of await ended) {
        assert.equal(look.status === "rejected" && look.reason.code, "HF_CLOSED");
      }
    } finally {
      server.resume();
      client.close();
    }
  });

  it("and etcdctl lock exclude each other, in the order of arrival", async () => {
    const locks = await open([server.port]);
    const lease = await locks.mutex("ctl/lock").acquire();
    const child = etcdctl("lock", "ctl/lock");
    await waitUntil(async () => (await locks.inspect("ctl/lock")).waiters.length === 1, {
      what: "etcdctl waits",
    });
    const behind = locks.mutex("ctl/lock").acquire();
    await waitUntil(async () => (await locks.inspect("ctl/lock")).waiters.length === 2, {
      what: "the acquire waits behind etcdctl",
    });
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
    const locks = await open([server.port]);
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
    const locks = await open([server.port]);
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
    const locks = await open([server.port]);
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

  it("revokes the mark of a once with this token, not a later mark", async () => {
    const real = await openEtcdClient(etcdUrl([server.port]));
    let isBetween = async (): Promise<void> => {};
    const range = real.kv.range.bind(real.kv);
    real.kv.range = async (request, options) => {
      const reply = await range(request, options);
      await isBetween();
      return reply;
    };
    const locks = new Holdfast(makeEtcdStore(real, "marks", () => real.close()));
    opened.push(locks);
    const other = await open([server.port], "marks");
    await locks.once("report", () => 1, { keepMs: 60_000 });
    const token = (await locks.inspect("report", "once")).mark?.token ?? 0n;
    isBetween = async () => {
      isBetween = async () => {};
      await other.revoke("report", { token, reason: "redo" }, "once");
      await other.once("report", () => 2, { keepMs: 60_000 });
    };
    assert.equal(await locks.revoke("report", { token, reason: "redo" }, "once"), false);
    assert.equal((await locks.once("report", () => 3, { keepMs: 60_000 })).ran, false);
  });

  it("lets etcd refuse a write of a stale holder", async () => {
    const client = new Etcd3({ hosts: [server.url] });
    const locks = new Holdfast(etcdStore({ client }));
    try {
      const lease = await locks.mutex("config-writer").acquire();
      const write = (value: string) =>
        client
          .if(...guard(lease))
          .then(client.put("config").value(value))
          .commit();
      assert.equal((await write("new")).succeeded, true);
      await locks.revoke("config-writer", { token: lease.token, reason: "test" });
      assert.equal((await write("stale")).succeeded, false);
      assert.equal(await client.get("config").string(), "new");
      assert.throws(() => guard({}), { code: "HF_UNSUPPORTED" });
    } finally {
      await locks.close();
      client.close();
    }
  });

  it("reuses the key of an entry, but not while a late copy of its delete may come", async () => {
    const real = await openEtcdClient(etcdUrl([server.port]));
    const { client, loseReply } = faultyEtcdClient(real);
    const locks = new Holdfast(makeEtcdStore(client, "keys", () => real.close()));
    opened.push(locks);
    const keyOfTurn = () => locks.mutex("m").run((lease) => String(guard(lease)[0]));
    const key = await keyOfTurn();
    assert.equal(await keyOfTurn(), key);
    const { struck } = await loseReply("release");
    assert.equal(await keyOfTurn(), key);
    await struck;
    const other = await keyOfTurn();
    assert.notEqual(other, key);
    assert.equal(await keyOfTurn(), other);
  });

  it("serves waiters while the history under their watches is compacted", async () => {
    const [a, b] = [await open([server.port]), await open([server.port])];
    let isOver = false;
    const compacting = (async () => {
      while (!isOver) {
        const status = (await server.post("/v3/maintenance/status")) as {
          header: { revision: string };
        };
        const { revision } = status.header;
        await server.post("/v3/kv/compaction", { revision }).catch(() => undefined);
        await sleep(5);
      }
    })();
    const inside = new Inside();
    const count = isFull ? 200 : 40;
    await Promise.all(
      Array.from({ length: count }, (_, index) => inside.work(index % 2 ? a : b, "compacted")),
    );
    isOver = true;
    await compacting;
    assert.deepEqual(inside.violations, []);
    assert.equal(inside.turns, count);
  });

  it("200 waiters with random aborts: no violation, and no keys are left", async () => {
    const before = await contents(server);
    const clients = await Promise.all([1, 2, 3].map(() => open([server.port], "storm")));
    const inside = new Inside();
    let aborted = 0;
    const contend = async (index: number): Promise<void> => {
      const controller = new AbortController();
      const isAborted = index % 3 === 0;
      if (isAborted) setTimeout(() => controller.abort(new Error("gave up")), Math.random() * 500);
      const locks = clients[index % 3] as Holdfast;
      await inside.work(locks, "m", controller.signal).catch((error: Error) => {
        if (error.message !== "gave up") throw error;
        aborted += 1;
      });
    };
    await Promise.all(Array.from({ length: 200 }, (_, index) => contend(index)));
    assert.deepEqual(inside.violations, []);
    assert.equal(inside.turns + aborted, 200);
    await Promise.all(clients.map((locks) => locks.close()));
    const { keys, leases } = await contents(server);
    assert.deepEqual(
      keys.filter((key) => key.includes("/storm/")),
      [],
    );
    assert.ok(leases <= before.leases, "sessions end with their clients");
  });

  it("keeps leases while the database is full, refuses new ones, and frees held ones", async () => {
    const locks = await open([server.port], "full");
    const lease = await locks.mutex("m").acquire({ ttlMs: 2_000 });
    const { id: memberID } = await server.view();
    const alarm = (action: string) =>
      server.post("/v3/maintenance/alarm", { action, memberID, alarm: "NOSPACE" });
    await alarm("ACTIVATE");
    try {
      await assert.rejects(locks.mutex("other").acquire(), { code: "HF_STORE" });
      await sleep(2_500);
      lease.assertHeld();
      assert.equal(await lease.release(), true, "a release needs no space");
    } finally {
      await alarm("DEACTIVATE");
    }
    await (await locks.mutex("m").acquire()).release();
  });

  it("a keep-alive without proof renews nothing", async () => {
    const client = await openEtcdClient(etcdUrl([server.port]));
    const { leaseClient } = client;
    const keepAlive = leaseClient.leaseKeepAlive.bind(leaseClient);
    let isDeposed = false;
    // The reply of a member that still considers itself the leader of an earlier term.
    leaseClient.leaseKeepAlive = async () => {
      const stream = await keepAlive();
      return new Proxy(stream, {
        get(target, property) {
          const value = Reflect.get(target, property, target);
          if (property !== "on" || !isDeposed) {
            return typeof value === "function" ? value.bind(target) : value;
          }
          return (event: "data", listener: (reply: { header: object }) => void) =>
            target.on(event, (reply) =>
              listener({ ...reply, header: { ...reply?.header, raft_term: "1" } }),
            );
        },
      });
    };
    const locks = new Holdfast(makeEtcdStore(client, "proof", () => client.close()));
    opened.push(locks);
    const lease = await locks.mutex("m").acquire({ ttlMs: 2_000 });
    isDeposed = true;
    const { signal } = lease;
    await waitUntil(async () => signal.aborted, { what: "the lease is lost" });
    assert.ok(signal.reason instanceof LeaseLostError);
    assert.equal(signal.reason.reason, "expired");
  });

  it("the keep-alive stream is cut while other calls work: the lease is lost in time", async () => {
    const client = await openEtcdClient(etcdUrl([server.port]));
    const locks = new Holdfast(makeEtcdStore(client, "cut", () => client.close()));
    opened.push(locks);
    const other = await open([server.port], "cut");
    const lease = await locks.mutex("m").acquire({ ttlMs: 2_000 });
    client.leaseClient.leaseKeepAlive = () => new Promise(() => {});
    const order: string[] = [];
    lease.signal.addEventListener("abort", () => order.push("lost"));
    const next = await other.mutex("m").acquire();
    order.push("granted");
    assert.deepEqual(order, ["lost", "granted"]);
    await next.release();
    await (await locks.mutex("other").acquire({ ttlMs: 2_000 })).release();
  });

  it("an idle holder is told of a revoke, also after its stream paused", async () => {
    const locks = await open([server.port], "rest");
    const file = new URL("etcd-holder.mjs", import.meta.url).pathname;
    const child = spawn(process.execPath, [file, etcdUrl([server.port], "rest").href], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const said = createInterface(child.stdout)[Symbol.asyncIterator]();
    const token = BigInt((await said.next()).value);
    const streams = async (): Promise<number> => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      const opened = /grpc_server_started_total\{.*Watch".*\} (\d+)/.exec(text);
      return Number(opened?.[1] ?? 0);
    };
    const before = await streams();
    await waitUntil(async () => (await streams()) > before + 1, {
      what: "the stream pauses and continues",
    });
    await locks.revoke("m", { token, reason: "test" });
    assert.equal((await said.next()).value, "revoked");
    assert.deepEqual(await once(child, "exit"), [0, null]);
  });

  it("a process that was stopped for longer than storeTimeoutMs keeps waiting", async () => {
    const locks = await open([server.port], "stopped");
    const lease = await locks.mutex("m").acquire();
    const url = etcdUrl([server.port], "stopped").href;
    await using waiter = await startProcess(new URL("etcd-waiter.mjs", import.meta.url), {
      args: [url, String(STORE_TIMEOUT_MS)],
    });
    await waitUntil(async () => (await locks.inspect("m")).waiters.length === 1, {
      what: "the process waits",
    });
    await waiter.pause();
    await sleep(2 * STORE_TIMEOUT_MS);
    waiter.resume();
    // Longer than a silence of the store may last: an error would come first.
    await sleep(2 * STORE_TIMEOUT_MS);
    await lease.release();
    assert.equal(await waiter.receive(), "held");
  });

  it("etcd is restarted under a holder and a waiter: both continue", async () => {
    const [a, b] = [await open([server.port], "restart"), await open([server.port], "restart")];
    const lease = await a.mutex("m").acquire({ ttlMs: 10_000 });
    const waiting = b.mutex("m").acquire({ ttlMs: 10_000, storeTimeoutMs: 30_000 });
    await waitUntil(async () => (await a.inspect("m")).waiters.length === 1, {
      what: "the acquire waits",
    });
    await server.restart({ keepData: true });
    await lease.renew();
    lease.assertHeld();
    assert.equal(await lease.release(), true);
    const next = await waiting;
    assert.ok(next.token > lease.token);
    await next.release();
  });
});

describe("a cluster of three", () => {
  let cluster: EtcdCluster;
  beforeAll(async () => {
    cluster = await startEtcdCluster(3);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());
  const ports = (): number[] => cluster.members.map(({ port }) => port);

  /** Runs contenders during `disturb` and a while longer. */
  async function storm(namespace: string, disturb: () => Promise<void>): Promise<void> {
    const clients = await Promise.all([1, 2, 3].map(() => open(ports(), namespace)));
    const inside = new Inside();
    let isOver = false;
    const contenders = clients.flatMap((locks) =>
      [1, 2].map(async () => {
        while (!isOver) await inside.work(locks, "m").catch(() => sleep(50));
      }),
    );
    const holder = await (clients[0] as Holdfast).mutex("held").acquire({ ttlMs: 10_000 });
    await disturb();
    const turns = inside.turns;
    await waitUntil(async () => inside.turns > turns + 5, {
      what: "more turns",
      timeoutMs: 40_000,
    });
    isOver = true;
    await Promise.all(contenders);
    assert.deepEqual(inside.violations, []);
    holder.assertHeld();
    assert.equal(await holder.release(), true);
  }

  it("the leader is killed: no two holders, and a holder keeps its lease", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await storm(`killed${round}`, async () => {
        const leader = await cluster.leader();
        await leader.kill();
        await cluster.leader();
        await sleep(1_000);
        await leader.start();
      });
    }
  });

  it("the leader is stopped and continues: no two holders", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await storm(`stopped${round}`, async () => {
        const leader = await cluster.leader();
        const others = cluster.members.filter((member) => member !== leader);
        await leader.pause();
        await cluster.leader(others);
        await sleep(1_000);
        leader.resume();
      });
    }
  });

  it("the leader is cut off from the other members for a while: no two holders", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await storm(`apart${round}`, async () => {
        const leader = await cluster.leader();
        await cluster.cutOff(leader);
        await cluster.leader(cluster.members.filter((member) => member !== leader));
        await sleep(1_000);
        cluster.heal();
        await cluster.leader();
      });
    }
  });

  it("a client of the cut-off leader alone is told of its loss before the next grant", async () => {
    const leader = await cluster.leader();
    const others = cluster.members.filter((member) => member !== leader);
    const apart = await open([leader.port], "apart");
    const together = await open(
      others.map(({ port }) => port),
      "apart",
    );
    const lease = await apart.mutex("m").acquire({ ttlMs: 3_000 });
    await cluster.cutOff(leader);
    const toldMs = new Promise<number>((resume) => {
      lease.signal.addEventListener("abort", () => resume(performance.now()));
    });
    try {
      const next = await together.mutex("m").acquire({ ttlMs: 10_000 });
      const heldMs = performance.now();
      assert.ok((await toldMs) < heldMs, "two believed to hold");
      assert.ok(next.token > lease.token);
      assert.equal(lease.state, "lost");
      await next.release();
    } finally {
      cluster.heal();
      await cluster.leader();
    }
  });

  it("a follower is restarted: no two holders", async () => {
    await storm("restarted", async () => {
      const leader = await cluster.leader();
      const follower = cluster.members.find((member) => member !== leader) as EtcdServer;
      await follower.restart({ keepData: true });
    });
  });

  it("a client that is cut off from the leader continues with the other members", async () => {
    const leader = await cluster.leader();
    const proxy = await startProxy({ targetPort: leader.port });
    const others = cluster.members.filter((member) => member !== leader);
    const locks = await open([proxy.port, ...others.map(({ port }) => port)], "cut");
    try {
      const lease = await locks.mutex("m").acquire({ ttlMs: 10_000 });
      proxy.cut();
      const cutMs = performance.now();
      await waitUntil(
        async () => {
          await lease.renew().catch(() => undefined);
          return performance.now() + lease.remainingMs() > cutMs + 10_500;
        },
        { what: "the lease is renewed" },
      );
      await locks.mutex("n").run(() => undefined);
      assert.equal(await lease.release(), true);
    } finally {
      await locks.close();
      await proxy.close();
    }
  });
});
