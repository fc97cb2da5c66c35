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
import { Holdfast } from "../../src/api/holdfast.js";
import { LeaseLostError } from "../../src/errors/index.js";
import { etcdStore, guard } from "../../src/stores/etcd/index.js";
import { KEEP_ALIVE, type LeaseReply, RANGE } from "../../src/stores/etcd/wire/messages.js";
import { startProcess } from "../faults/process.js";
import { isFull } from "../fixtures/depth.js";
import { randomOf } from "../fixtures/seed.js";
import { type EtcdServer, startEtcd } from "../servers/etcd.js";
import { waitUntil } from "../servers/wait-until.js";
import { untilWaiting } from "../stores/trial.js";
import { changedClient } from "./changed-client.js";
import { faultyEtcdClient } from "./faulty-client.js";
import { clientOf, etcdUrl, storeOf } from "./harness.js";
import { Contention, contents, EtcdTrial } from "./trial.js";

const STORE_TIMEOUT_MS = 2_000;

const random = randomOf("etcd faults");
const trial = new EtcdTrial();
afterEach(() => trial.close());

describe("one node", () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(() => server.close());

  it("can be closed while it does not answer, and pending calls reject", async () => {
    const locks = new Holdfast(storeOf(clientOf([server.port]), "silent"));
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
    }
  });

  it("revokes the mark of a once with this token, not a later mark", async () => {
    let isBetween = async (): Promise<void> => {};
    const client = changedClient(clientOf([server.port]), {
      async call(path, _, send) {
        const reply = await send();
        if (path === RANGE.path) await isBetween();
        return reply;
      },
    });
    const locks = new Holdfast(storeOf(client, "marks"));
    trial.add(locks);
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
    const locks = new Holdfast(etcdStore({ endpoints: [`127.0.0.1:${server.port}`] }));
    try {
      const lease = await locks.mutex("config-writer").acquire();
      const { key, createRevision } = guard(lease);
      const write = (value: string) =>
        client
          .if(key, "Create", "==", String(createRevision))
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
    const { client, loseReply } = faultyEtcdClient(clientOf([server.port]));
    const locks = new Holdfast(storeOf(client, "keys"));
    trial.add(locks);
    const keyOfTurn = () => locks.mutex("m").run((lease) => String(guard(lease).key));
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
      if (isAborted) setTimeout(() => controller.abort(new Error("gave up")), random() * 500);
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
    const lease = await locks.mutex("m").acquire({ ttlMs: 6_000 });
    const { id: memberID } = await server.view();
    const alarm = (action: string) =>
      server.post("/v3/maintenance/alarm", { action, memberID, alarm: "NOSPACE" });
    await alarm("ACTIVATE");
    try {
      await assert.rejects(locks.mutex("other").acquire(), { code: "HF_STORE" });
      const deadlineMs = performance.now() + lease.remainingMs();
      await waitUntil(() => performance.now() + lease.remainingMs() > deadlineMs + 100, {
        what: "the lease is renewed",
      });
      assert.equal(await lease.release(), true, "a release needs no space");
    } finally {
      await alarm("DEACTIVATE");
    }
    await (await locks.mutex("m").acquire()).release();
  });

  it("a keep-alive without proof renews nothing", async () => {
    let isDeposed = false;
    // The reply of a member that still considers itself the leader of an earlier term.
    const client = changedClient(clientOf([server.port]), {
      async call(path, _, send) {
        const reply = await send();
        if (path !== KEEP_ALIVE.path || !isDeposed) return reply;
        const { header, ...rest } = reply as LeaseReply;
        return { ...rest, header: { ...header, raftTerm: 1n } };
      },
    });
    const locks = new Holdfast(storeOf(client, "proof"));
    trial.add(locks);
    const lease = await locks.mutex("m").acquire({ ttlMs: 2_000 });
    isDeposed = true;
    const { signal } = lease;
    await waitUntil(async () => signal.aborted, { what: "the lease is lost" });
    assert.ok(signal.reason instanceof LeaseLostError);
    assert.equal(signal.reason.reason, "expired");
  });

  it("keep-alives get no answer while other calls work: the lease is lost in time", async () => {
    let isCut = false;
    const client = changedClient(clientOf([server.port]), {
      call: (path, _, send) => (isCut && path === KEEP_ALIVE.path ? new Promise(() => {}) : send()),
    });
    const locks = new Holdfast(storeOf(client, "cut"));
    trial.add(locks);
    const other = await trial.open([server.port], "cut");
    const lease = await locks.mutex("m").acquire({ ttlMs: 2_000 });
    isCut = true;
    const order: string[] = [];
    lease.signal.addEventListener("abort", () => order.push("lost"));
    const next = await other.mutex("m").acquire();
    order.push("granted");
    assert.deepEqual(order, ["lost", "granted"]);
    await next.release();
    await (await locks.mutex("other").acquire({ ttlMs: 2_000 })).release();
  });

  it("an idle holder is told of a revoke", async () => {
    const locks = await trial.open([server.port], "rest");
    const { said, exited } = startHolder("rest", "wait");
    const token = BigInt((await said.next()).value);
    await locks.revoke("m", { token, reason: "test" });
    assert.equal((await said.next()).value, "revoked");
    assert.deepEqual(await exited, [0, null]);
  });

  it("neither a held lease nor the stream of its watch keeps a process alive", async () => {
    const locks = await trial.open([server.port], "end");
    const { said, exited } = startHolder("end", "end");
    await said.next();
    assert.deepEqual(await exited, [0, null]);
    assert.equal((await locks.inspect("m")).holders.length, 1, "the process did not release it");
  });

  function startHolder(namespace: string, then: "wait" | "end") {
    const file = new URL("./holder.mjs", import.meta.url).pathname;
    const url = etcdUrl([server.port], namespace).href;
    const child = spawn(process.execPath, [file, url, then], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const said = createInterface(child.stdout)[Symbol.asyncIterator]();
    return { said, exited: once(child, "exit") };
  }

  it("a process that was stopped for longer than storeTimeoutMs keeps waiting", async () => {
    const locks = await trial.open([server.port], "stopped");
    const lease = await locks.mutex("m").acquire();
    const url = etcdUrl([server.port], "stopped").href;
    await using waiter = await startProcess(new URL("./waiter.mjs", import.meta.url), {
      args: [url, String(STORE_TIMEOUT_MS)],
    });
    await untilWaiting(locks, "m");
    await waiter.pause();
    await sleep(1.5 * STORE_TIMEOUT_MS);
    waiter.resume();
    // Longer than a silence of the store may last: an error would come first.
    await sleep(1.5 * STORE_TIMEOUT_MS);
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
    await untilWaiting(a, "m");
    await server.restart({ keepData: true });
    await lease.renew();
    lease.assertHeld();
    assert.equal(await lease.release(), true);
    const next = await waiting;
    assert.ok(next.token > lease.token);
    await next.release();
  });
});
