/**
 * A node is shared: the work of a release must not grow with the number of waiters, nor the number
 * of calls with the number of leases.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Claim, Grant } from "../../src/contract/store.js";
import { driverOf } from "../../src/stores/redis-client/supported-clients.js";
import { nodeError } from "../../src/stores/redlock/errors.js";
import { redlockStore } from "../../src/stores/redlock/index.js";
import { Layout } from "../../src/stores/redlock/layout.js";
import { renewalsCall } from "../../src/stores/redlock/protocol.js";
import { RedlockNode } from "../../src/stores/redlock/quorum.js";
import { waitUntil } from "../servers/wait-until.js";
import { RedlockTrial } from "./trial.js";

const MANY = 3_000;
let trial: RedlockTrial;
beforeAll(async () => {
  trial = await RedlockTrial.start(3);
});
afterAll(() => trial?.[Symbol.asyncDispose]());

const LEFT = "holdfast::w:l:left";
const DONE = "holdfast::w:o:done";

/** Adds waiters at the head whose clients are not subscribed. */
async function addWaiters(key: string): Promise<void> {
  const members = Array.from({ length: MANY }, (_, at) => [at, `holdfast@gone/${at}`]).flat();
  await Promise.all(trial.servers.map((server) => server.ask("ZADD", key, ...members)));
}

async function published(): Promise<number> {
  const stats = await trial.server(0).info("commandstats");
  return Number(/calls=(\d+)/.exec(stats.cmdstat_publish ?? "")?.[1] ?? 0);
}

test("a release drops some dead waiters, and live waiters get the lock", async () => {
  const [{ locks: one }, { locks: two }] = [await trial.open(), await trial.open()];
  const lease = await one.mutex("left").acquire();
  const waiting = two.mutex("left").acquire();
  const isThere = async (): Promise<boolean> => {
    return (await trial.server(0).ask("ZCARD", LEFT)) === 1;
  };
  await waitUntil(isThere, { what: "a waiter" });
  await addWaiters(LEFT);
  const before = await published();
  await lease.release();
  expect((await published()) - before).toBeLessThan(300);
  await (await waiting).release();
});

test("a once that is done tells some of its waiters", async () => {
  const { locks } = await trial.open();
  const before = await published();
  await locks.once("done", () => addWaiters(DONE), { keepMs: 60_000 });
  expect((await published()) - before).toBeLessThan(600);
});

const LEASES = 1_000;
const TTL_MS = 60_000;

function claimOf(name: string, owner: string): Claim {
  return {
    ...{ space: "lock", name, owner, mode: "exclusive", weight: 1, limit: 1, ttlMs: TTL_MS },
    ...{ meta: {}, span: 1, transferable: true, ownSession: true, storeTimeoutMs: 30_000 },
  };
}

async function scriptCalls(): Promise<number[]> {
  return await Promise.all(
    trial.servers.map(async (server) => {
      const { cmdstat_evalsha: stats = "" } = await server.info("commandstats");
      return Number(/calls=(\d+)/.exec(stats)?.[1] ?? 0);
    }),
  );
}

test("1,000 leases are renewed by a handful of calls; a lost lease harms no other", async () => {
  const { clients } = await trial.open();
  const store = redlockStore({
    ...{ clients, nodeNames: trial.names, bootstrap: "now", namespace: "many" },
    nodeTimeoutMs: 10_000,
  });
  try {
    const grants: Grant[] = [];
    for (let at = 0; at < LEASES; at += 1) {
      const grant = await store.acquire(claimOf(`n${at}`, `o${at}`), null);
      if (grant.type === "granted") grants.push(grant);
    }
    expect(grants).toHaveLength(LEASES);
    const leases = grants.map((grant) => ({ grant, ttlMs: TTL_MS }));
    // The servers know the script after its first run.
    await store.renew(leases.slice(0, 1));
    await store.revoke("lock", "n100", grants[100]?.token ?? 0n, "by hand");
    const ask = (...args: readonly string[]): Promise<unknown> =>
      Promise.all(trial.servers.map((server) => server.ask(...args)));
    await ask("SET", "holdfast:many:l:n200", "another");
    await ask("DEL", "holdfast:many:l:n300", "holdfast:many:b:l:n300");
    await ask("DEL", "holdfast:many:b:l:n400");
    await ask("HSET", "holdfast:many:b:l:n400", "a", "hash");
    const before = await scriptCalls();
    const results = await store.renew(leases);
    const after = await scriptCalls();
    for (const [at, calls] of after.entries()) expect(calls - (before[at] ?? 0)).toBeLessThan(10);
    // By a message of the nodes, or by this renewal.
    expect(results[100]).toEqual({ type: "ended" });
    expect(results[200]).toEqual({ type: "ended" });
    expect(leases[200]?.grant.loss).toEqual({ reason: "replaced", detail: "" });
    // No node kept it: nodes that were taken again prove nothing.
    expect(results[300]).toEqual({ type: "ended" });
    expect(results[400]).toMatchObject({ type: "unknown" });
    const rest = results.filter((_, at) => ![100, 200, 300, 400].includes(at));
    expect(new Set(rest.map(({ type }) => type))).toEqual(new Set(["renewed"]));
  } finally {
    await store.close();
  }
});

/** A node with three locks, and the call that renews their leases. */
async function renewalOfThree(names: readonly string[]) {
  const { clients, locks } = await trial.open();
  await locks.mutex("warm").run(() => {});
  const node = new RedlockNode("n0", driverOf(clients[0]));
  const layout = new Layout("");
  const leases = names.map((name, at) => {
    const keys = layout.keysOf("lock", name);
    return { grant: { claim: { owner: `o${at}`, span: 1 }, token: 64n, keys }, ttlMs: TTL_MS };
  });
  for (const { grant } of leases) {
    await trial.server(0).ask("SET", grant.keys[1] ?? "", grant.claim.owner, "PX", 5_000);
  }
  return { node, ...renewalsCall(leases, { setId: "none", channel: "holdfast@me" }) };
}

test("a lease for which the script fails does not harm the other leases of its call", async () => {
  const { node, keys, args } = await renewalOfThree(["f0", "f1", "f2"]);
  // The token of the second lease is no number, and the script computes with it.
  args[args.indexOf("o1") + 1] = "no number";
  const answers = (await node.ask(keys, args)) as readonly (readonly unknown[])[];
  expect(answers).toEqual([
    ["G", TTL_MS],
    ["E", expect.stringContaining("number")],
    ["G", TTL_MS],
  ]);
});

test("a command that the server refuses in the script may follow one that wrote", async () => {
  const { node, keys, args } = await renewalOfThree(["n0", "n1", "n2"]);
  await trial.server(0).ask("ACL", "SETUSER", "default", "-pexpireat");
  try {
    const answers = (await node.ask(keys, args)) as readonly (readonly [string, string])[];
    for (const [code, message] of answers) {
      expect(code).toBe("E");
      expect(nodeError("n0", message)).toMatchObject({ outcome: "unknown" });
    }
  } finally {
    await trial.server(0).ask("ACL", "SETUSER", "default", "+@all");
  }
});
