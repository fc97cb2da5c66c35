/**
 * Faults of one etcd server and its clients. The conformance kit checks the rules of the store;
 * here the server stops, restarts and runs full while clients hold and wait.
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
import { etcdStore, guard } from "../../src/stores/etcd/index.js";
import { startProcess } from "../faults/process.js";
import { type EtcdServer, startEtcd } from "../servers/etcd.js";
import { waitUntil } from "../servers/wait-until.js";
import { etcdUrl } from "./etcd-harness.js";
import { Contention, contents, EtcdTrial } from "./etcd-trial.js";
import { faultyEtcdClient } from "./faulty-etcd-client.js";

const isFull = process.env.HOLDFAST_FULL === "1";
const STORE_TIMEOUT_MS = 2_000;

const trial = new EtcdTrial();
afterEach(() => trial.close());

describe("one node", () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(() => server.close());

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
    trial.closeLater(locks);
    const other = await trial.open([server.port], "marks");
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
    trial.closeLater(locks);
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
    const [a, b] = [await trial.open([server.port]), await trial.open([server.port])];
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
    const inside = new Contention();
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
    const clients = await Promise.all([1, 2, 3].map(() => trial.open([server.port], "storm")));
    const inside = new Contention();
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
    const locks = await trial.open([server.port], "full");
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
    trial.closeLater(locks);
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
    trial.closeLater(locks);
    const other = await trial.open([server.port], "cut");
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
    const locks = await trial.open([server.port], "rest");
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
    const locks = await trial.open([server.port], "stopped");
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
    const [a, b] = [
      await trial.open([server.port], "restart"),
      await trial.open([server.port], "restart"),
    ];
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
