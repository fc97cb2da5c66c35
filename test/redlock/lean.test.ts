/** The short path through a node's script: it is taken, and never taken wrongly. */
import assert from "node:assert/strict";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { driverOf } from "../../src/stores/redis-client/supported-clients.js";
import { Layout } from "../../src/stores/redlock/layout.js";
import { releaseArgs, voteArgs } from "../../src/stores/redlock/protocol.js";
import { RedlockNode, setIdOf } from "../../src/stores/redlock/quorum.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { RedlockTrial } from "./trial.js";

const SET = "a,b,c";
const channel = `holdfast@${"c".repeat(36)}`;

async function calls(server: RedisServer): Promise<Record<string, number>> {
  const entries = Object.entries(await server.info("commandstats")).map(([key, text]) => {
    const [, count = "0"] = /calls=(\d+)/.exec(text) ?? [];
    return [key.replace("cmdstat_", ""), Number(count)] as const;
  });
  return Object.fromEntries(entries);
}

it("an uncontended lock costs a node exactly these calls", async () => {
  await using trial = await RedlockTrial.start(3);
  const { locks } = await trial.open();
  const server = trial.server(0);
  const pair = async (): Promise<void> => {
    const lease = await locks.mutex("m").acquire();
    assert.equal(await lease.release(), true);
    // The last node, whose reply the client does not wait for.
    const isFree = async () => (await trial.values("m")).every((value) => value === null);
    await waitUntil(isFree, { what: "no node has the lock" });
  };
  await pair();
  // Until the client is subscribed and the marker of the node is final.
  await waitUntil(
    async () => {
      await server.ask("CONFIG", "RESETSTAT");
      await pair();
      return (await calls(server)).info === undefined;
    },
    { what: "a vote without a check of the process" },
  );
  await server.ask("CONFIG", "RESETSTAT");
  await pair();
  const { info, ...counted } = await calls(server);
  expect(counted).toMatchObject({ evalsha: 2, mget: 2, set: 3, del: 1 });
  expect(counted).not.toHaveProperty("zrange");
  expect(info).toBeUndefined();
});

it("a vote counts for a client that gives numbers as texts", async () => {
  await using trial = await RedlockTrial.start(3);
  const clients = trial.servers.map(({ port }) => new Redis(port, { stringNumbers: true }));
  try {
    const { locks } = await trial.open({ clients });
    for (let turn = 0; turn < 2; turn += 1) {
      const lease = await locks.mutex("m").acquire({ waitMs: 2_000 });
      assert.equal(await lease.release(), true);
    }
    await locks.close();
  } finally {
    for (const client of clients) client.disconnect();
  }
});

it("a vote that is sent again to a process with an old snapshot is refused", async () => {
  const server = await startRedis({ args: ["--dbfilename", "dump.rdb"] });
  const client = new Redis(server.port, "127.0.0.1");
  client.on("error", () => {});
  const driver = driverOf(client);
  // Like the store's own connection, which never reconnects: the proof relies on that.
  const listener = await driver.open(null);
  try {
    const node = new RedlockNode("a", driver);
    const layout = new Layout("");
    const { run_id: run = "" } = await server.info("server");
    await listener.subscribe(`holdfast@/${run}`, () => {});
    // Above the floor, which is the time of the marker.
    let ballot = (Date.now() + 5_000) * 1_000;
    const vote = (name: string): Promise<unknown> => {
      ballot += 1;
      const claim = { owner: name, span: 1, ttlMs: 20_000 };
      const asked = { claim, ballot, channel, metaText: "{}", waiter: null };
      const args = voteArgs({ ...asked, setId: setIdOf(SET), maxTtlMs: 30_000 });
      return node.ask(layout.keysOf("lock", name), args);
    };
    await node.ask(layout.keysOfNode(), ["mark", run, SET, "now", "30000", "0", "0"]);
    expect(await vote("first")).toBe(1);
    await server.ask("CONFIG", "RESETSTAT");
    expect(await vote("second")).toBe(1);
    const { info, time } = await calls(server);
    expect([info, time], "the short way").toEqual([undefined, 1]);
    await server.ask("SAVE");
    // First sent to a process that no longer reads, then to the process that replaces it.
    await server.pause();
    const answer = vote("third");
    await server.kill();
    await server.start();
    expect(await answer).toEqual(["U"]);
    expect(await server.ask("GET", "holdfast:node"), "the snapshot is back").toContain(run);
    expect(await server.ask("EXISTS", "second")).toBe(1);
    expect(await server.ask("EXISTS", "third")).toBe(0);
  } finally {
    client.disconnect();
    listener.close();
    await server.close();
  }
});

it("ballots of the same 1,000 s share an expiry that is late enough for the last", async () => {
  await using server = await startRedis();
  const client = new Redis(server.port, "127.0.0.1");
  const listener = client.duplicate();
  try {
    const node = new RedlockNode("a", driverOf(client));
    const layout = new Layout("");
    const { run_id: run = "" } = await server.info("server");
    await listener.subscribe(`holdfast@/${run}`);
    await node.ask(layout.keysOfNode(), ["mark", run, SET, "now", "30000", "0", "0"]);
    const pair = async (name: string, ballot: number): Promise<void> => {
      const asked = { claim: { owner: name, span: 1, ttlMs: 20_000 }, ballot, channel };
      const terms = { metaText: "{}", waiter: null, setId: setIdOf(SET), maxTtlMs: 30_000 };
      const keys = layout.keysOf("lock", name);
      expect(await node.ask(keys, voteArgs({ ...asked, ...terms }))).toBe(1);
      expect(await node.ask(keys, releaseArgs(name, ballot, 200))).toBe(1);
    };
    // The first second of a period that is to come, and nearly the last.
    const first = (Math.ceil(Date.now() / 1_000_000) * 1_000 + 1) * 1_000_000;
    const last = first + 990_000_000;
    await pair("m", first);
    // Raises the highest ballot of the node, so that the next vote takes the short path.
    await pair("other", last);
    await server.ask("CONFIG", "RESETSTAT");
    await pair("m", last + 1);
    const { time, set } = await calls(server);
    expect([time, set], "the short path").toEqual([undefined, 3]);
    const untilMs = Date.now() + Number(await server.ask("PTTL", "holdfast::b:l:m"));
    // Later its absence says as much.
    expect(untilMs).toBeGreaterThan(last / 1_000 + 86_400_000);
    expect(untilMs, "the expiry of the first").toBeLessThan(first / 1_000 + 87_465_000);
  } finally {
    client.disconnect();
    listener.disconnect();
  }
});

it("a release takes no short path while a client waits, also after a new grant", async () => {
  await using trial = await RedlockTrial.start(3);
  const [a, b, c] = [await trial.open(), await trial.open(), await trial.open()];
  const lease = await a.locks.mutex("m").acquire();
  const kinds = (): Promise<unknown[]> =>
    Promise.all(trial.servers.map((one) => one.ask("GETRANGE", "holdfast::b:l:m", "17", "17")));
  const areAll = (kind: string) => async () => (await kinds()).every((one) => one === kind);
  await waitUntil(areAll("H"), { what: "all nodes are held without a waiter" });
  const others = [b, c].map(async ({ locks }) => await locks.mutex("m").acquire());
  await waitUntil(areAll("W"), { what: "all nodes know a waiter" });
  await lease.release();
  const second = await Promise.race(others);
  // One node may be reserved for the other waiter: the holder has a majority.
  const isKnown = async (): Promise<boolean> => {
    const [values, found] = [await trial.values("m"), await kinds()];
    const held = found.filter((_, at) => values[at] !== null);
    return held.length >= 2 && held.every((kind) => kind === "W");
  };
  await waitUntil(isKnown, { what: "all nodes that voted know the other waiter" });
  await second.release();
  const last = (await Promise.all(others)).find(({ token }) => token !== second.token);
  assert.ok(last && last.token > second.token);
  assert.equal(await last.release(), true);
});
