/**
 * Faults of connections and refusals of the server: one or all connections are closed, the server
 * is paused, the script is flushed, another script blocks, the server loads data or becomes a
 * replica.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { holdRequest } from "../faults/late-copy.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { isFull } from "../fixtures/depth.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { libraries } from "./clients.js";
import { Trial } from "./trial.js";
import { untilRenewed } from "./until-renewed.js";

const OFFER_MS = 400;
/** The time to the next heartbeat, and a few round trips. */
const BACKSTOP_MS = OFFER_MS + 250;

/** The fields of CLIENT LIST for all other connections. */
async function connections(server: RedisServer): Promise<Record<string, string>[]> {
  const lines = String(await server.ask("CLIENT", "LIST"))
    .trim()
    .split("\n");
  const parsed = lines.map((line) =>
    Object.fromEntries(line.split(" ").map((field) => field.split(/=(.*)/s, 2))),
  );
  return parsed.filter(({ cmd }) => cmd !== "client|list");
}

async function kill(
  server: RedisServer,
  match: (connection: Record<string, string>) => boolean,
): Promise<void> {
  const found = (await connections(server)).filter(match);
  expect(found).not.toEqual([]);
  for (const { id = "" } of found) await server.ask("CLIENT", "KILL", "ID", id);
}

const isSubscription = ({ sub }: Record<string, string>): boolean => sub === "1";
const isCommand = ({ cmd = "", flags = "" }: Record<string, string>): boolean =>
  cmd.startsWith("eval") && !flags.includes("S");

const OPTIONS = { offerMs: OFFER_MS };

describe("one server", () => {
  let server: RedisServer;
  let trial: Trial;
  beforeAll(async () => {
    server = await startRedis({ args: ["--busy-reply-threshold", "20"] });
  });
  afterAll(() => server?.close());
  beforeEach(() => {
    trial = new Trial(server);
  });
  afterEach(() => trial.close());

  for (const library of libraries) {
    const open = () => trial.open(library, server.port, OPTIONS);
    // One library is enough where the client plays no part.
    const alike = test.skipIf(library === "node-redis" && !isFull);

    test(`${library}: commands lose their connection under a holder and a waiter`, async () => {
      const [a, b] = [await open(), await open()];
      const lease = await trial.acquire(a, { ttlMs: 3_000 });
      const waiting = trial.acquire(b, { ttlMs: 3_000 });
      await trial.waiting(a, 1);
      await kill(server, isCommand);
      // Renewals continue over the next connection.
      await untilRenewed(lease);
      expect(await lease.release()).toBe(true);
      expect(await (await waiting).release()).toBe(true);
      await trial.end(b, 1_000);
    });

    test(`${library}: the subscription is closed, and the push has no receiver`, async () => {
      const [a, b] = [await open(), await open()];
      const lease = await trial.acquire(a);
      const waiting = trial.acquire(b);
      await trial.waiting(a, 1);
      await server.untilSubscribed(2);
      await kill(server, isSubscription);
      await lease.release();
      const stopwatch = new Stopwatch();
      const next = await waiting;
      stopwatch.expectLessThan(BACKSTOP_MS);
      await next.release();
      await server.untilSubscribed(2);
      await trial.end(a, 1_000);
    });

    alike(`${library}: all stands still for less than the lease, then for longer`, async () => {
      const [a, b] = [await open(), await open()];
      const ttlMs = 4_000;
      const lease = await trial.acquire(a, { ttlMs });
      await server.ask("CLIENT", "PAUSE", ttlMs / 4, "ALL");
      await untilRenewed(lease);
      const waiting = trial.acquire(b, { ttlMs });
      await trial.waiting(a, 1);
      await server.ask("CLIENT", "PAUSE", 1.2 * ttlMs, "ALL");
      // The trial checks that the first client knows of its loss before the second one holds.
      const next = await waiting;
      expect(lease.signal.reason).toMatchObject({ reason: "expired" });
      await next.release();
      await trial.end(a, 1_000);
    });

    alike(`${library}: the script is forgotten again and again under load`, async () => {
      const [a, b] = [await open(), await open()];
      const isOver = new AbortController();
      const flushing = (async () => {
        while (!isOver.signal.aborted) {
          await server.ask("SCRIPT", "FLUSH");
          await sleep(2);
        }
      })();
      await Promise.all([a, b].map((locks) => turns(locks, 30)));
      isOver.abort();
      await flushing;
      await trial.end(a, 1_000);
    });

    alike(`${library}: another script blocks the server`, async () => {
      const locks = await open();
      await trial.turn(locks);
      const blocking = server.ask("EVAL", "while true do end", 0).catch((error: Error) => error);
      await waitUntil(() => isRefused(server, "BUSY"), { what: "the server is busy" });
      const refused = trial.acquire(locks, { storeTimeoutMs: 200 });
      await expect(refused).rejects.toThrow(/silent for 200 ms.*another script.*SCRIPT KILL/s);
      const patient = trial.acquire(locks);
      await server.ask("SCRIPT", "KILL");
      await blocking;
      await (await patient).release();
      await trial.end(locks, 1_000);
    });

    test(`${library}: the server becomes a replica for a while`, async () => {
      const [a, b] = [await open(), await open()];
      const lease = await trial.acquire(a, { ttlMs: 10_000 });
      const replicaOf = (...args: string[]) => server.ask("REPLICAOF", ...args);
      // No master answers there, so the replica keeps its data.
      await replicaOf("127.0.0.1", "1");
      const refused = trial.acquire(b, { storeTimeoutMs: 200 });
      await expect(refused).rejects.toThrow(/this server is a replica now/);
      await replicaOf("NO", "ONE");
      await untilRenewed(lease);
      expect(await lease.release()).toBe(true);
      await trial.end(b, 1_000);
    });

    alike(`${library}: too few replicas to write`, async () => {
      const locks = await open();
      const lease = await trial.acquire(locks, { ttlMs: 10_000 });
      await server.ask("CONFIG", "SET", "min-replicas-to-write", 1);
      try {
        const refused = locks.mutex("other").acquire({ storeTimeoutMs: 200 });
        await expect(refused).rejects.toThrow(/min-replicas-to-write/);
      } finally {
        await server.ask("CONFIG", "SET", "min-replicas-to-write", 0);
      }
      expect(await lease.release()).toBe(true);
      await trial.end(locks, 1_000);
    });
  }

  test("a push is lost: a heartbeat finds the grant", async () => {
    await using proxy = await startProxy({ targetPort: server.port, framing: "resp" });
    const [a, b] = [trial.ioredis(server.port), trial.ioredis(proxy.port, { offerMs: 6_000 })];
    const lease = await trial.acquire(a);
    // The client sends three heartbeats in this timeout; the offer would lapse much later.
    const waiting = trial.acquire(b, { ttlMs: 6_000, storeTimeoutMs: 3_000 });
    await trial.waiting(a, 1);
    await server.untilSubscribed(2);
    const lost = losePushes(proxy);
    await lease.release();
    const stopwatch = new Stopwatch();
    const next = await waiting;
    expect(lost()).toBe(1);
    stopwatch.expectLessThan(3_000);
    await next.release();
    await proxy.heal();
    await trial.end(a, 1_000);
  });

  test("a client that is granted before it subscribed finds the grant by a heartbeat", async () => {
    await using proxy = await startProxy({ targetPort: server.port, framing: "resp" });
    const held = holdRequest(proxy, { match: "SUBSCRIBE" });
    const [a, b] = [trial.ioredis(server.port), trial.ioredis(proxy.port, OPTIONS)];
    const lease = await trial.acquire(a);
    const waiting = trial.acquire(b);
    await held.caught;
    await trial.waiting(a, 1);
    await lease.release();
    const stopwatch = new Stopwatch();
    await (await waiting).release();
    stopwatch.expectLessThan(BACKSTOP_MS);
    proxy.reset();
    await trial.end(a, 1_000);
  });

  async function turns(locks: Holdfast, count: number): Promise<void> {
    for (let turn = 0; turn < count; turn += 1) await trial.turn(locks);
  }
});

describe.concurrent("a server that was killed or paused", () => {
  for (const library of libraries) {
    test.for(["kill", "pause"] as const)(`${library}: close ends in time (%s)`, async (end) => {
      await using server = await startRedis();
      await using trial = new Trial(server);
      const locks = await trial.open(library, server.port, OPTIONS);
      const lease = await locks.mutex("held").acquire();
      await server[end]();
      const asked = locks.mutex("asked").tryAcquire({ storeTimeoutMs: 200 });
      // The release is repeated until `close`.
      await expect(asked).rejects.toMatchObject({ code: "HF_STORE" });
      const stopwatch = new Stopwatch();
      await locks.close();
      // A connection to a paused server can still be opened: the server may answer later.
      stopwatch.expectLessThan(end === "kill" ? 2_500 : 6_500);
      expect(lease.state).toBe("released");
    });
  }
});

test.concurrent("node-redis: a new connection without an answer is opened again", async () => {
  await using server = await startRedis();
  await using trial = new Trial(server);
  await using proxy = await startProxy({ targetPort: server.port, framing: "resp" });
  // The first connection is the client's, the second one is the subscription's.
  let silent: unknown;
  proxy.onRequest((_request, link) => {
    silent ??= [...proxy.links][1];
    return link === silent ? "drop" : undefined;
  });
  const locks = await trial.open("node-redis", proxy.port, OPTIONS);
  await trial.turn(locks);
  await server.untilSubscribed(1);
  await trial.end(locks, 1_000);
});

describe.concurrent("a server that loads its data", () => {
  for (const library of libraries) {
    test(`${library}: an acquire waits for it`, async () => {
      const args = ["--key-load-delay", "3000", "--loading-process-events-interval-bytes", "1024"];
      await using server = await startRedis({ args });
      await using trial = new Trial(server);
      const locks = await trial.open(library, server.port, OPTIONS);
      await trial.turn(locks);
      await server.ask("DEBUG", "POPULATE", 250, "key", 1_000);
      await server.ask("SAVE");
      await server.kill();
      const started = server.start();
      await waitUntil(() => isRefused(server, "LOADING"), { what: "the server loads" });
      const waiting = trial.acquire(locks, { storeTimeoutMs: 30_000 });
      await started;
      await (await waiting).release();
      await trial.end(locks, 1_000);
    });
  }
});

async function isRefused(server: RedisServer, code: string): Promise<boolean> {
  return await server.ask("GET", "anything").then(
    () => false,
    (error: Error) => error.message.startsWith(code),
  );
}

/** Loses all messages to subscribers from now on. Returns a count of them. */
function losePushes(proxy: FaultProxy): () => number {
  let count = 0;
  proxy.onReply(({ pushed, value }) => {
    if (!pushed || !Array.isArray(value) || value[0] !== "message") return undefined;
    count += 1;
    return "drop";
  });
  return () => count;
}
