/** Keys, values, events and replies of etcd that Holdfast did not write. */

import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Etcd3 } from "etcd3";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { HoldfastError } from "../../src/errors/index.js";
import { channels } from "../../src/events/events.js";
import type { Lease } from "../../src/lease/lease.js";
import type { EtcdClient } from "../../src/stores/etcd/client.js";
import {
  KEEP_ALIVE,
  type LeaseReply,
  TXN,
  type TxnReply,
} from "../../src/stores/etcd/wire/messages.js";
import { isFull } from "../fixtures/depth.js";
import { seededGarbage } from "../fixtures/garbage.js";
import { watchHost } from "../fixtures/host.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { type EtcdServer, startEtcd } from "../servers/etcd.js";
import { waitUntil } from "../servers/wait-until.js";
import { changedClient } from "./changed-client.js";
import { clientOf, storeOf } from "./harness.js";

const TTL_MS = 5_000;
let server: EtcdServer;
let etcd: Etcd3;
let namespace: string;
let host: ReturnType<typeof watchHost>;
const opened: Holdfast[] = [];
const heard: unknown[] = [];
const onEvent = (event: unknown): void => void heard.push(event);

beforeAll(async () => {
  server = await startEtcd();
  etcd = new Etcd3({ hosts: [server.url] });
});
afterAll(async () => {
  etcd?.close();
  await server?.close();
});
beforeEach(() => {
  namespace = randomUUID();
  host = watchHost();
  heard.length = 0;
  subscribe(channels.foreign, onEvent);
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
  unsubscribe(channels.foreign, onEvent);
  expect(await host.end()).toEqual([]);
});

function open(change: (client: EtcdClient) => EtcdClient = (client) => client): Holdfast {
  const client = change(clientOf([server.port]));
  const locks = new Holdfast(storeOf(client, namespace), { ttlMs: TTL_MS });
  opened.push(locks);
  return locks;
}

const keyOf = (name: string): string => `holdfast:in/${namespace}/lock/${name}`;

test("foreign events break their watch: the watch begins again, and the wait ends", async () => {
  const taps: ((reply: unknown) => void)[] = [];
  const locks = open((client) => changedClient(client, { tap: (write) => taps.push(write) }));
  const others = open();
  const held = await others.mutex("m").acquire();
  const waiting = locks.mutex("m").acquire();
  await waitUntil(() => taps.length > 0, { what: "a watch" });
  const repliesTo = (watchId: bigint): unknown[] => [
    {},
    null,
    { watchId, events: [{}] },
    { watchId, events: [{ type: "Delete", kv: {} }] },
  ];
  for (const at of repliesTo(0n).keys()) {
    // Each watch has a new stream, because the previous one was closed.
    const streams = taps.length;
    taps.at(-1)?.(repliesTo(BigInt(streams))[at]);
    expect(heard).toHaveLength(at + 1);
    await waitUntil(() => taps.length > streams, { what: "another watch" });
  }
  expect(heard[0]).toMatchObject({ store: "etcd", where: "the events of a watch" });
  await held.release();
  await (await waiting).release();
});

test("a keep-alive without a time does not move the deadline", async () => {
  let isDamaged = false;
  const locks = open((client) =>
    changedClient(client, {
      async call(path, _, send) {
        const reply = await send();
        if (!isDamaged || path !== KEEP_ALIVE.path) return reply;
        return { ...(reply as LeaseReply), ttl: "garbage" };
      },
    }),
  );
  const lease = await locks.mutex("m").acquire({ ttlMs: 2_000 });
  isDamaged = true;
  await waitUntil(() => lease.state === "lost", { what: "the deadline" });
  expect(lease.signal.reason).toMatchObject({ reason: "expired" });
});

test("a lock of a Go program whose lease id is negative is read, and can be revoked", async () => {
  const lease = "-9223372036854775808";
  await etcd.leaseClient.leaseGrant({ TTL: 60, ID: lease });
  await etcd.kv.put({ key: Buffer.from(`${keyOf("m")}/-8000000000000000`), lease });
  const locks = open();
  const { holders } = await locks.inspect("m");
  expect(holders).toHaveLength(1);
  expect(holders[0]?.remainingMs).toBeGreaterThan(TTL_MS);
  expect(await locks.mutex("m").tryAcquire()).toBe(null);
  expect(await locks.revoke("m", { token: holders[0]?.token ?? 0n, reason: "test" })).toBe(true);
  await (await locks.mutex("m").acquire()).release();
});

test("an incomplete reply means unknown, not refused", async () => {
  let cuts = 0;
  const locks = open((client) =>
    changedClient(client, {
      async call(path, _, send) {
        const reply = (await send()) as TxnReply;
        if (path !== TXN.path || reply.responses.length < 2) return reply;
        cuts += 1;
        return { ...reply, responses: reply.responses.slice(1) };
      },
    }),
  );
  const asked = locks.mutex("m").acquire({ storeTimeoutMs: 1_000 });
  await expect(asked).rejects.toMatchObject({ code: "HF_STORE", outcome: "unknown" });
  expect(cuts).toBeGreaterThan(0);
});

describe("garbage at random", () => {
  const garbage = seededGarbage();
  const rounds = isFull ? 100 : 10;

  test(`seed ${garbage.seed}`, { timeout: isFull ? 900_000 : 120_000 }, async () => {
    const locks = open();
    const others = open();
    let isOver = false;
    let turns = 0;
    const work = (async () => {
      for (; !isOver; turns += 1) {
        const leases = await Promise.all(["a", "b"].map((name) => locks.mutex(name).acquire()));
        for (const lease of leases) expect(await lease.release()).toBe(true);
      }
    })();
    work.catch(() => {});
    for (let round = 0; round < rounds; round += 1) await damageOnce(locks, others, round);
    isOver = true;
    await work;
    expect(turns).toBeGreaterThan(rounds);
  });

  async function damageOnce(locks: Holdfast, others: Holdfast, round: number): Promise<void> {
    const name = `spoilt-${round}`;
    const short = { ttlMs: TTL_MS, waitMs: 300, storeTimeoutMs: 2_000 };
    const lock = garbage.pick([() => locks.mutex(name), () => locks.semaphore(name, 2)])();
    const other = garbage.pick([() => others.mutex(name), () => others.semaphore(name, 1)])();
    const held = garbage.chance(0.8) ? await lock.acquire(short) : null;
    const waiting = [settle(other.acquire(short)), settle(other.acquire(short))];
    await new Promise((resume) => setImmediate(resume));
    for (let times = garbage.whole(1, 3); times > 0; times -= 1) await damage(name);
    const watch = new Stopwatch();
    await Promise.all([
      ...waiting,
      settle(lock.tryAcquire(short)),
      settle(other.acquire(short)),
      settle(locks.inspect(name)),
      settle(others.revoke(name, { token: held?.token ?? 1n, reason: "stuck" })),
      held && settle(held.renew()),
    ]);
    for await (const view of locks.list()) expect(view.name).toBeTypeOf("string");
    if (held) await settle(held.release());
    watch.expectLessThan(15_000);
    await etcd.delete().prefix(`${keyOf(name)}/`);
    await (await lock.acquire({ ...short, waitMs: 10_000, storeTimeoutMs: 10_000 })).release();
  }

  /** Puts a foreign key into the queue, or a foreign value into an entry. */
  async function damage(name: string): Promise<void> {
    const keys = await etcd
      .getAll()
      .prefix(`${keyOf(name)}/`)
      .keys();
    const isNew = keys.length === 0 || garbage.chance(0.5);
    const like = "694d8f.s.1.2.0-0";
    const id = garbage.text(
      garbage.pick(["done", like, ...keys.map((key) => key.split("/").at(-1) ?? "")]),
    );
    const key = isNew ? `${keyOf(name)}/${id}` : garbage.pick(keys);
    const before = isNew ? "" : ((await etcd.get(key).string()) ?? "");
    const value = garbage.text(before || `{"meta":{},"ttlMs":1,"sinceMs":1}`);
    // Some entries lose their lease by it.
    const ignore_lease = !isNew && garbage.chance(0.7);
    const request = { key: Buffer.from(key), value: Buffer.from(value), ignore_lease };
    await etcd.kv.put(request).catch((error: unknown) => {
      // The entry was gone before the change.
      if (!/key not found/.test(String(error))) throw error;
    });
  }
});

function settle(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    (value) => (isLease(value) ? value.release() : value),
    (error: unknown) => {
      if (!(error instanceof HoldfastError)) throw error;
      return error;
    },
  );
}

function isLease(value: unknown): value is Lease {
  return typeof value === "object" && value !== null && "release" in value;
}
