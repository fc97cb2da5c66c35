/** With `replicas`, a grant, handoff or renewal counts only when the replicas have it. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ReplicationError } from "../../src/errors/index.js";
import { type Replication, startReplication } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { libraries } from "./clients.js";
import { Trial } from "./trial.js";

const TIMEOUT_MS = 150;
const OPTIONS = { replicas: 1, replicaTimeoutMs: TIMEOUT_MS, offerMs: 500 };

let replication: Replication;
let trial: Trial;
beforeAll(async () => {
  replication = await startReplication({ replicas: 1 });
});
afterAll(() => replication?.[Symbol.asyncDispose]());
beforeEach(() => {
  trial = new Trial(replication.master);
});
afterEach(() => trial.close());

async function withoutReplica(act: () => Promise<void>): Promise<void> {
  const [replica] = replication.replicas;
  await replica?.pause();
  try {
    await act();
  } finally {
    replica?.resume();
  }
}

describe.each(libraries)("%s", (library) => {
  const open = () => trial.open(library, replication.master.port, OPTIONS);

  test("every connection is closed: the next grant opens another", async () => {
    const locks = await open();
    await trial.turn(locks);
    // The client's connection, and the one for WAIT.
    expect(await replication.master.ask("CLIENT", "KILL", "TYPE", "normal")).toBe(2);
    await trial.turn(locks, { waitMs: 20_000 });
    await trial.end(locks, 1_000);
  });

  test("the script is flushed: it is sent again", async () => {
    const locks = await open();
    await trial.turn(locks);
    await replication.master.ask("SCRIPT", "FLUSH");
    await trial.turn(locks);
    await trial.end(locks, 1_000);
  });

  test("a release that need not be answered is sent when the call returns", async () => {
    const [locks, plain] = [await open(), trial.ioredis(replication.master.port)];
    const lease = await locks.mutex("sent").acquire({ release: "sent" });
    await withoutReplica(async () => {
      // Its WAIT keeps the connection busy.
      const refused = locks
        .mutex("other")
        .acquire()
        .catch((error: unknown) => error);
      await waitUntil(async () => (await plain.inspect("other")).holders.length > 0, {
        what: "the other lock is taken",
      });
      await lease.release();
      expect((await plain.inspect("sent")).holders).toEqual([]);
      expect(await refused).toBeInstanceOf(ReplicationError);
    });
  });

  test("a grant without replicas is released at once and blocks no client", async () => {
    const [locks, plain] = [await open(), trial.ioredis(replication.master.port)];
    await trial.turn(locks);
    await withoutReplica(async () => {
      const refused = await trial.acquire(locks).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(ReplicationError);
      expect(refused).toMatchObject({ asked: 1, acknowledged: 0, timeoutMs: TIMEOUT_MS });
      // Before the lease would expire.
      await trial.turn(plain, { waitMs: 3_000 });
    });
    await trial.end(locks, 1_000);
  });

  test("a store that is opened without replicas grants nothing until they are back", async () => {
    await withoutReplica(async () => {
      const refused = trial.acquire(await open());
      await expect(refused).rejects.toBeInstanceOf(ReplicationError);
    });
    const locks = await open();
    await trial.turn(locks, { waitMs: 20_000 });
    await trial.end(locks, 1_000);
  });

  test("a handoff is trusted only when the replicas have its confirm", async () => {
    const [a, b] = [await open(), await open()];
    const lease = await trial.acquire(a);
    let isGranted = false;
    const waiting = trial.acquire(b, { storeTimeoutMs: 20_000 }).then((next) => {
      isGranted = true;
      return next;
    });
    await trial.waiting(a, 1);
    await withoutReplica(async () => {
      expect(await lease.release()).toBe(true);
      await waitUntil(async () => (await a.inspect(trial.name)).holders.length === 1, {
        what: "the handoff",
      });
      // Long enough for a push, its confirm, and replicaTimeoutMs.
      await new Promise((resolve) => setTimeout(resolve, 2 * TIMEOUT_MS));
      expect(isGranted).toBe(false);
    });
    expect(await (await waiting).release()).toBe(true);
    await trial.end(a, 2_000);
  });

  test("a renewal without replicas does not count: the loss is reported in time", async () => {
    const [locks, plain] = [await open(), trial.ioredis(replication.master.port)];
    const lease = await trial.acquire(locks, { ttlMs: 2_000 });
    await withoutReplica(async () => {
      const next = trial.acquire(plain, { waitMs: 20_000 });
      await waitUntil(() => lease.signal.aborted, { what: "the holder is told of the loss" });
      expect(lease.signal.reason).toMatchObject({ reason: "expired" });
      // The trial checks that the holder was told first; then the master releases the lease.
      expect(await (await next).release()).toBe(true);
    });
    await trial.end(locks, 1_000);
  });
});
