/**
 * The slot of a lock moves from node to node of a Cluster under load. While some keys have moved
 * and others have not, a script must never work with half of them.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { ReplicationError } from "../../src/errors/index.js";
import { isFull } from "../fixtures/depth.js";
import { untilInSync } from "../servers/redis.js";
import {
  type ClusterNode,
  type RedisCluster,
  startRedisCluster,
} from "../servers/redis-cluster.js";
import { waitUntil } from "../servers/wait-until.js";
import { type Library, libraries, openCluster } from "./clients.js";
import { type StoreOptions, Trial } from "./trial.js";

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster({ replicasPerMaster: 1 });
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

function openBy(library: Library) {
  return async (trial: Trial, options?: StoreOptions): Promise<Holdfast> =>
    trial.by(await openCluster[library](cluster), options);
}

async function onTrial(act: (trial: Trial) => Promise<void>): Promise<void> {
  const trial = new Trial(...cluster.masters.map(({ server }) => server));
  try {
    await act(trial);
  } finally {
    await trial.close();
  }
}

/** The slot and the node of the lock, found by its register while it is held. */
async function place(trial: Trial): Promise<{ slot: number; owner: ClusterNode }> {
  for (const { server } of cluster.masters) {
    const registers = await server.ask("KEYS", `{hf:${trial.namespace}:*}`);
    for (const register of registers as string[]) {
      const slot = await cluster.slotOf(register);
      const owner = await cluster.ownerOf(slot);
      const isThere = (await owner.server.ask("HEXISTS", register, `l:${trial.name}`)) === 1;
      if (isThere) return { slot, owner };
    }
  }
  throw new Error("the lock is not held");
}

/** The other node with the same slots: the master or the replica. */
function partnerOf(node: ClusterNode): ClusterNode | undefined {
  const { masters, replicas } = cluster;
  return replicas[masters.indexOf(node)] ?? masters[replicas.indexOf(node)];
}

async function elsewhere(slot: number): Promise<ClusterNode> {
  const owner = await cluster.ownerOf(slot);
  return cluster.masters.find((node) => node !== owner) ?? owner;
}

const isRegister = (key: string): boolean => key.endsWith("}");

/** The key of a lock that moves first. */
const halves: readonly [string, (key: string) => boolean][] = [
  ["the register has", isRegister],
  ["the register and the lock have", (key) => isRegister(key) || key.includes("}:l:")],
  ["what belongs to it has", (key) => !isRegister(key)],
];

for (const library of libraries) {
  const open = openBy(library);
  describe.concurrent(library, () => {
    test("a slot moves under holders, waiters and their turns", () =>
      onTrial(async (trial) => {
        const options = { offerMs: 500 };
        const clients = [
          await open(trial, options),
          await open(trial, options),
          await open(trial, options),
        ];
        const first = await trial.acquire(clients[0] as Holdfast);
        const { slot } = await place(trial);
        await first.release();
        const isOver = new AbortController();
        let turns = 0;
        const contenders = clients.map(async (locks) => {
          while (!isOver.signal.aborted) {
            await trial.turn(locks);
            turns += 1;
          }
        });
        for (let round = 0; round < 4; round += 1) {
          const move = await cluster.beginMove(slot, await elsewhere(slot));
          await sleep(30);
          await move.moveKeys();
          await sleep(30);
          await move.finish();
          const before = turns;
          await waitUntil(() => turns > before + 10, { what: "more turns" });
        }
        isOver.abort();
        await Promise.all(contenders);
        await trial.end(clients[0] as Holdfast, 5_000);
      }));

    for (const [what, isFirst] of halves) {
      test(`no waiter overtakes or is forgotten while only ${what} has moved`, () =>
        onTrial(async (trial) => {
          const [a, b, c] = [await open(trial), await open(trial), await open(trial)];
          const lease = await trial.acquire(a, { ttlMs: 15_000 });
          const { slot } = await place(trial);
          const order: string[] = [];
          const turn = async (locks: Holdfast, name: string): Promise<void> => {
            const next = await trial.acquire(locks, { ttlMs: 15_000 });
            order.push(name);
            expect(await next.release()).toBe(true);
          };
          const turns = [turn(b, "b")];
          await trial.waiting(a, 1);
          const move = await cluster.beginMove(slot, await elsewhere(slot));
          const moved: string[] = [];
          const left = await move.moveKeys((key) => isFirst(key) && moved.push(key) > 0);
          expect(moved).not.toEqual([]);
          expect(left).not.toEqual([]);
          turns.push(turn(c, "c"));
          await sleep(100);
          const released = lease.release();
          await sleep(100);
          await move.moveKeys();
          await move.finish();
          expect(await released).toBe(true);
          await Promise.all(turns);
          expect(order).toEqual(["b", "c"]);
          await trial.end(a, 5_000);
        }));
    }

    test("a waiter comes while the slot is migrating: the holder keeps its lease", () =>
      onTrial(async (trial) => {
        const [a, b] = [await open(trial), await open(trial)];
        const lease = await trial.acquire(a, { ttlMs: 15_000 });
        const { slot } = await place(trial);
        const move = await cluster.beginMove(slot, await elsewhere(slot));
        // No key has moved, but new keys can no longer be written here.
        const waiting = trial.acquire(b, { ttlMs: 15_000 });
        await sleep(100);
        await lease.renew();
        await move.moveKeys();
        await move.finish();
        expect((await a.inspect(trial.name)).holders).toMatchObject([{ token: lease.token }]);
        await trial.waiting(a, 1);
        expect(await lease.release()).toBe(true);
        await (await waiting).release();
        await trial.end(a, 5_000);
      }));
  });
}

/** One at a time, and last: they change the Cluster. */
describe("with replicas", () => {
  for (const library of libraries) {
    const open = openBy(library);
    test(`${library}: a grant counts only when the shard's own replica has it`, () =>
      onTrial(async (trial) => {
        const locks = await open(trial, { replicas: 1, replicaTimeoutMs: 200 });
        const lease = await trial.acquire(locks, { ttlMs: 15_000 });
        const { owner } = await place(trial);
        expect(await lease.release()).toBe(true);
        const replica = partnerOf(owner);
        await replica?.server.pause();
        try {
          const refused = await trial.acquire(locks).catch((error: unknown) => error);
          expect(refused).toBeInstanceOf(ReplicationError);
          expect(refused).toMatchObject({ asked: 1, acknowledged: 0, timeoutMs: 200 });
        } finally {
          replica?.server.resume();
        }
        await trial.end(locks, 5_000);
      }));

    const isLater = library === "node-redis" && !isFull;
    test.skipIf(isLater)(`${library}: a lease that the replica has survives its master`, () =>
      onTrial(async (trial) => {
        const [locks, other] = [await open(trial, { replicas: 1 }), await open(trial)];
        const lease = await trial.acquire(locks, { ttlMs: 60_000, storeTimeoutMs: 3_000 });
        const { slot, owner } = await place(trial);
        await owner.server.kill();
        // The Cluster is down for all clients until a replica takes over.
        const waiting = trial.acquire(other, { storeTimeoutMs: 20_000 });
        await cluster.promote(partnerOf(owner) as ClusterNode, slot);
        await owner.server.start();
        const next = await cluster.ownerOf(slot);
        await untilInSync(next.server, owner.server);
        // The old master is the replica now, and the renewal needs it.
        const renewed = () => lease.renew(30_000).then(() => true);
        await waitUntil(renewed, { what: "the lease is renewed", everyMs: 100 });
        lease.assertHeld();
        await trial.waiting(other, 1);
        expect(await lease.release()).toBe(true);
        expect(await (await waiting).release()).toBe(true);
        await trial.end(other, 5_000);
      }),
    );
  }
});
