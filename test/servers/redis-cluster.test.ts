import { afterAll, beforeAll, expect, it } from "vitest";
import { isAlive } from "./process-state.js";
import { type ClusterNode, type RedisCluster, startRedisCluster } from "./redis-cluster.js";

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster({ replicasPerMaster: 1 });
});

afterAll(async () => {
  const pids = cluster.nodes.map((node) => node.server.pid);
  await cluster[Symbol.asyncDispose]();
  expect(pids.filter(isAlive)).toEqual([]);
});

function otherMaster(than: ClusterNode): ClusterNode {
  const other = cluster.masters.find((node) => node !== than);
  if (!other) throw new Error("the cluster has one master only");
  return other;
}

it("covers all slots, and moves one with its keys", async () => {
  expect(await cluster.ownerOf(0)).toBe(cluster.masters[0]);
  expect(await cluster.ownerOf(16_383)).toBe(cluster.masters[2]);
  const slot = await cluster.slotOf("a");
  const from = await cluster.ownerOf(slot);
  const to = otherMaster(from);
  await from.server.ask("SET", "a", "carried");
  await cluster.moveSlot(slot, to);
  expect(await to.server.ask("GET", "a")).toBe("carried");
  await expect(from.server.ask("GET", "a")).rejects.toThrow(`MOVED ${slot} 127.0.0.1`);
});

it("answers ASK while a slot is on the move", async () => {
  const slot = await cluster.slotOf("b");
  const from = await cluster.ownerOf(slot);
  const to = otherMaster(from);
  const move = await cluster.beginMove(slot, to);
  await expect(from.server.ask("GET", "b")).rejects.toThrow(`ASK ${slot} 127.0.0.1`);
  await move.moveKeys();
  await move.finish();
  expect(await to.server.ask("GET", "b")).toBeNull();
});

it("fails over to a replica, by agreement and after a crash", async () => {
  const [first, second] = cluster.masters;
  const [ofFirst, ofSecond] = cluster.replicas;
  if (!first || !second || !ofFirst || !ofSecond) throw new Error("too few nodes");
  await cluster.promote(ofFirst, 0);
  expect(await cluster.ownerOf(0)).toBe(ofFirst);

  const slot = 8192;
  expect(await cluster.ownerOf(slot)).toBe(second);
  await second.server.kill();
  await cluster.promote(ofSecond, slot);
  expect(await cluster.ownerOf(slot)).toBe(ofSecond);
  await second.server.start();
});
