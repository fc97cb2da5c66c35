/** A push of a grant is believed, so it is sent only if the grant is written, and only once. */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import type { Lock } from "../../src/locks/lock.js";
import {
  type RedisServer,
  type Replication,
  startReplication,
  untilInSync,
} from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { ioredis } from "./clients.js";
import { Trial } from "./trial.js";

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

/** The pushes of grants that a server sends; the function waits until none is under way. */
async function grantsAt(server: RedisServer): Promise<() => Promise<string[]>> {
  const listener = new Redis(server.port);
  trial.closeLater(() => listener.disconnect());
  const heard: string[] = [];
  listener.on("pmessage", (_pattern, channel, message) => heard.push(channel, message));
  await listener.psubscribe("*");
  return async () => {
    await server.ask("PUBLISH", "all-heard", "");
    await waitUntil(async () => heard.includes("all-heard"), { what: "the end of the messages" });
    return heard.filter((text) => text.startsWith("g"));
  };
}

/** The mutex takes the short path of the script, the reader behind a writer the general one. */
const pairs: Record<string, (locks: Holdfast) => [Lock, Lock]> = {
  "a mutex": (locks) => [locks.mutex("m"), locks.mutex("m")],
  "a reader behind a writer": (locks) => {
    const { read, write } = locks.readWrite("m");
    return [write, read];
  },
};

describe.each(Object.entries(pairs))("%s", (_title, pair) => {
  test("a server that refuses writes tells no waiter that it holds", async () => {
    const { master } = replication;
    const [a, b] = [trial.ioredis(master.port), trial.ioredis(master.port)];
    const options = { fairness: "strict", ttlMs: 60_000 } as const;
    const lease = await pair(a)[0].acquire(options);
    const waiting = pair(b)[1].acquire(options);
    await trial.waiting(a, 1);
    const grants = await grantsAt(master);
    const refusals = async (): Promise<number> => {
      const { errorstat_READONLY = "count=0" } = await master.info("errorstats");
      return Number(errorstat_READONLY.replace("count=", ""));
    };
    const before = await refusals();
    // The server becomes read-only, and its clients stay connected.
    await master.ask("REPLICAOF", "127.0.0.1", "1");
    try {
      void lease.release();
      await waitUntil(async () => (await refusals()) > before, { what: "a refused release" });
      expect(await grants()).toEqual([]);
    } finally {
      await master.ask("REPLICAOF", "NO", "ONE");
    }
    expect(await (await waiting).release()).toBe(true);
  });

  test("a user without the right to PUBLISH hands nothing over, and the waiter stays", async () => {
    const { master } = replication;
    const access = { username: "silent", password: "password" };
    await master.ask("ACL", "SETUSER", "silent", "reset", "on", ">password", "~*", "&*", "+@all");
    const a = trial.by(ioredis(new Redis({ port: master.port, ...access })));
    const b = trial.ioredis(master.port);
    const lease = await pair(a)[0].acquire({ fairness: "strict", ttlMs: 3_000 });
    const waiting = pair(b)[1].acquire({ fairness: "strict" });
    await trial.waiting(b, 1);
    await master.ask("ACL", "SETUSER", "silent", "-publish");
    await master.ask("ACL", "LOG", "RESET");
    const grants = await grantsAt(master);
    // Its failure is an event; the lease expires.
    await lease.release();
    expect(String(await master.ask("ACL", "LOG"))).toContain("publish");
    expect(await grants()).toEqual([]);
    await trial.waiting(b, 1);
    const keys = (await master.ask("KEYS", `{hf:${trial.namespace}}?*`)) as string[];
    expect(keys.length).toBeGreaterThanOrEqual(3);
    const leftMs = await Promise.all(keys.map((key) => master.ask("PTTL", key)));
    for (const ms of leftMs) expect(Number(ms)).toBeGreaterThan(0);
    // The lease expires, and the heartbeat of the waiter, which may publish, gives it the lock.
    expect(await (await waiting).release()).toBe(true);
  });

  test("a client that listens at a replica hears of no grant", async () => {
    const { master, replicas } = replication;
    const [replica] = replicas as [RedisServer];
    await untilInSync(master, replica);
    const [a, b] = [trial.ioredis(master.port), trial.ioredis(master.port)];
    const lease = await pair(a)[0].acquire({ fairness: "strict" });
    const waiting = pair(b)[1].acquire({ fairness: "strict" });
    await trial.waiting(a, 1);
    const [here, there] = [await grantsAt(master), await grantsAt(replica)];
    await lease.release();
    expect(await (await waiting).release()).toBe(true);
    await using connection = await master.client();
    await connection.send("SET", "written-after", "the push");
    expect(await connection.send("WAIT", 1, 5_000)).toBe(1);
    expect(await here()).toHaveLength(1);
    expect(await there()).toEqual([]);
  });
});
