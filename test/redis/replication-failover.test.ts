/**
 * The link to the replica stalls, then the replica becomes the master. Every trusted lease must be
 * there, and a grant that the replica did not get must have been refused.
 */

import { setImmediate as turn } from "node:timers/promises";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { ReplicationError } from "../../src/errors/index.js";
import type { Lease } from "../../src/lease/lease.js";
import type { Acquire, Command } from "../../src/rules/ledger-command.js";
import { RedisStore } from "../../src/stores/redis/redis-store.js";
import { driverOf } from "../../src/stores/redis-client/supported-clients.js";
import type { ProxiedRequest } from "../faults/framing.js";
import { holdRequest } from "../faults/late-copy.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { isFull } from "../fixtures/depth.js";
import { type RedisServer, startRedis, untilInSync } from "../servers/redis.js";
import { closeAll } from "../servers/server-process.js";
import { waitUntil } from "../servers/wait-until.js";
import { libraries } from "./clients.js";
import { carries, Trial } from "./trial.js";

const TIMES = isFull ? 30 : 5;
const NAMES = 24;
const OPTIONS = { replicas: 1, replicaTimeoutMs: 500 };

/** A master, a replica behind a link that can stall, and a trial without a register to check. */
class Scene implements AsyncDisposable {
  readonly master: RedisServer;
  readonly link: FaultProxy;
  readonly replica: RedisServer;
  readonly trial: Trial = new Trial();

  constructor(master: RedisServer, link: FaultProxy, replica: RedisServer) {
    this.master = master;
    this.link = link;
    this.replica = replica;
  }

  static async start(): Promise<Scene> {
    const master = await startRedis();
    const link = await startProxy({ targetPort: master.port });
    const replica = await startRedis({ args: ["--replicaof", "127.0.0.1", `${link.port}`] });
    await untilInSync(master, replica);
    // A replica in sync sends its first acknowledgement after up to a second.
    await waitUntil(async () => (await master.ask("WAIT", 1, 100)) === 1, {
      what: "the replica answers",
    });
    return new Scene(master, link, replica);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.trial.close();
    await closeAll([this.link, this.master, this.replica]);
  }
}

describe.concurrent.each(libraries)("%s", (library) => {
  // A different part of the grants is under way when the link stalls.
  const parts = Array.from({ length: TIMES }, (_, time) => Math.floor((time * NAMES) / TIMES));

  test.each(parts)("every trusted lease is on the new master, stalled at name %i", async (part) => {
    await using scene = await Scene.start();
    const { master, link, replica, trial } = scene;
    const locks = await trial.open(library, master.port, OPTIONS);
    const believed: Lease[] = [];
    let refused = 0;
    const take = async (name: string): Promise<void> => {
      try {
        believed.push(await locks.mutex(name).acquire({ ttlMs: 60_000 }));
      } catch (error) {
        expect(error).toBeInstanceOf(ReplicationError);
        refused += 1;
      }
    };
    // A busy replica may be late even before the link stalls.
    const hasFirst = async (): Promise<boolean> => {
      await take("first");
      return believed.length > 0;
    };
    await waitUntil(hasFirst, { what: "the first grant" });
    refused = 0;
    const taking: Promise<void>[] = [];
    for (let at = 0; at < NAMES; at += 1) {
      if (at === part) link.stall("replies");
      taking.push(take(`n${at}`));
      await turn();
    }
    await Promise.all(taking);
    await take("last");
    expect(refused).toBeGreaterThan(0);
    expect(believed.map(({ name }) => name)).toContain("first");

    link.cut();
    await replica.ask("REPLICAOF", "NO", "ONE");
    const others = trial.ioredis(replica.port);
    for (const { name, state } of believed) {
      expect(state).toBe("held");
      expect([name, await others.mutex(name).tryAcquire()]).toEqual([name, null]);
    }
  });
});

test.concurrent("the reply about an older grant needs the replica too", async () => {
  await using scene = await Scene.start();
  const { master, link } = scene;
  const client = new Redis(master.port);
  const arbiter = new RedisStore(driverOf(client), { namespace: "", ...OPTIONS });
  const run = async (...commands: Command[]) => (await arbiter.execute("", commands)).replies;
  try {
    const { nowUs } = await arbiter.execute("", []);
    const times = { ttlUs: 60_000_000, offerUs: 1_000_000, heartbeatUs: 1_000_000 };
    const request = { mode: "exclusive", weight: 1, limit: 1, span: 1, meta: "" } as const;
    const acquire: Acquire = {
      ...{ type: "acquire", key: "l:m", owner: "owner", client: "client", enqueue: false },
      ...{ ...times, ...request, notAfterUs: nowUs + 60_000_000, seenToken: 0 },
    };
    const confirm: Command = { type: "confirm", key: "l:m", owner: "owner" };
    // The grant is written, confirmed and acknowledged: repeating it changes nothing.
    for (const command of [acquire, acquire, confirm]) {
      const isAnswered = async () => (await run(command))[0]?.constructor === Object;
      await waitUntil(isAnswered, { what: "the replica has it" });
    }
    link.stall("replies");
    expect(await run(acquire)).toMatchObject([{ code: "HF_STORE_REPLICATION" }]);
    expect(await run(confirm)).toMatchObject([{ code: "HF_STORE_REPLICATION" }]);
    await link.heal();
    await waitUntil(async () => (await run(confirm))[0]?.constructor === Object, {
      what: "the replica has it",
    });
  } finally {
    await arbiter.close();
    client.disconnect();
  }
});

test.concurrent("a master that was a replica gives no proof for earlier writes", async () => {
  await using scene = await Scene.start();
  const { master, trial } = scene;
  await using proxy = await startProxy({ targetPort: master.port, framing: "resp" });
  const locks = trial.ioredis(proxy.port, { ...OPTIONS, replicaTimeoutMs: 4_000 });
  await (await locks.mutex("m").acquire()).release();
  let acquires = 0;
  proxy.onRequest((request) => {
    if (carries("acquire")(request)) acquires += 1;
    return undefined;
  });
  const isWaitForIt = ({ command }: ProxiedRequest): boolean => command === "WAIT" && acquires > 0;
  const held = holdRequest(proxy, { match: isWaitForIt });
  const acquiring = locks.mutex("m").acquire();
  await held.caught;
  // The connection stays, but its earlier writes may be gone.
  await master.ask("REPLICAOF", "127.0.0.1", "1");
  await master.ask("REPLICAOF", "NO", "ONE");
  expect(await held.deliver()).toBe(1);
  expect(await (await acquiring).release()).toBe(true);
  expect(acquires).toBeGreaterThan(1);
});
