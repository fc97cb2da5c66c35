/** The short path through a node's script: it is taken, and never taken wrongly. */
import assert from "node:assert/strict";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { driverOf } from "../../src/stores/redis-client/driver.js";
import { voteArgs } from "../../src/stores/redlock/codec.js";
import { Layout } from "../../src/stores/redlock/layout.js";
import { setIdOf } from "../../src/stores/redlock/quorum.js";
import { RedlockNode } from "../../src/stores/redlock/redlock-node.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { RedlockTrial } from "./redlock-trial.js";

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
