/** Members of an etcd cluster that crash, stop or are cut off while clients hold and wait. */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { startProxy } from "../faults/proxy.js";
import { isFull } from "../fixtures/depth.js";
import { type EtcdCluster, type EtcdServer, startEtcdCluster } from "../servers/etcd.js";
import { waitUntil } from "../servers/wait-until.js";
import { Contention, EtcdTrial } from "./trial.js";

const ROUNDS = isFull ? 5 : 1;

const trial = new EtcdTrial();
afterEach(() => trial.close());

describe("a cluster of three", () => {
  let cluster: EtcdCluster;
  beforeAll(async () => {
    cluster = await startEtcdCluster(3);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());
  const ports = (): number[] => cluster.members.map(({ port }) => port);

  /** Runs contenders during `disturb` and a while longer. */
  async function storm(namespace: string, disturb: () => Promise<void>): Promise<void> {
    const clients = await Promise.all([1, 2, 3].map(() => trial.open(ports(), namespace)));
    const inside = new Contention();
    let isOver = false;
    const contenders = clients.flatMap((locks) =>
      [1, 2].map(async () => {
        while (!isOver) await inside.work(locks, "m").catch(() => sleep(50));
      }),
    );
    const holder = await (clients[0] as Holdfast).mutex("held").acquire({ ttlMs: 10_000 });
    await disturb();
    const turns = inside.turns;
    await waitUntil(async () => inside.turns > turns + 5, {
      what: "more turns",
    });
    isOver = true;
    await Promise.all(contenders);
    assert.deepEqual(inside.violations, []);
    holder.assertHeld();
    assert.equal(await holder.release(), true);
  }

  it("the leader is killed: no two holders, and a holder keeps its lease", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await storm(`killed${round}`, async () => {
        const leader = await cluster.leader();
        await leader.kill();
        await cluster.leader();
        await sleep(1_000);
        await leader.start();
      });
    }
  });

  it("the leader is stopped and continues: no two holders", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await storm(`stopped${round}`, async () => {
        const leader = await cluster.leader();
        const others = cluster.members.filter((member) => member !== leader);
        await leader.pause();
        await cluster.leader(others);
        await sleep(1_000);
        leader.resume();
      });
    }
  });

  it("the leader is cut off from the other members for a while: no two holders", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await storm(`apart${round}`, async () => {
        const leader = await cluster.leader();
        await cluster.cutOff(leader);
        await cluster.leader(cluster.members.filter((member) => member !== leader));
        await sleep(1_000);
        cluster.heal();
        await cluster.leader();
      });
    }
  });

  it("a client of the cut-off leader alone is told of its loss before the next grant", async () => {
    const leader = await cluster.leader();
    const others = cluster.members.filter((member) => member !== leader);
    const apart = await trial.open([leader.port], "apart");
    const together = await trial.open(
      others.map(({ port }) => port),
      "apart",
    );
    const lease = await apart.mutex("m").acquire({ ttlMs: 3_000 });
    await cluster.cutOff(leader);
    const toldMs = new Promise<number>((resume) => {
      lease.signal.addEventListener("abort", () => resume(performance.now()));
    });
    try {
      const next = await together.mutex("m").acquire({ ttlMs: 10_000 });
      const heldMs = performance.now();
      assert.ok((await toldMs) < heldMs, "two believed to hold");
      assert.ok(next.token > lease.token);
      assert.equal(lease.state, "lost");
      await next.release();
    } finally {
      cluster.heal();
      await cluster.leader();
    }
  });

  it("a follower is restarted: no two holders", async () => {
    await storm("restarted", async () => {
      const leader = await cluster.leader();
      const follower = cluster.members.find((member) => member !== leader) as EtcdServer;
      await follower.restart({ keepData: true });
    });
  });

  it("a client that is cut off from the leader continues with the other members", async () => {
    const leader = await cluster.leader();
    const proxy = await startProxy({ targetPort: leader.port });
    const others = cluster.members.filter((member) => member !== leader);
    const locks = await trial.open([proxy.port, ...others.map(({ port }) => port)], "cut");
    try {
      const lease = await locks.mutex("m").acquire({ ttlMs: 10_000 });
      proxy.cut();
      const cutMs = performance.now();
      await waitUntil(
        async () => {
          await lease.renew().catch(() => undefined);
          return performance.now() + lease.remainingMs() > cutMs + 10_500;
        },
        { what: "the lease is renewed" },
      );
      await locks.mutex("n").run(() => undefined);
      assert.equal(await lease.release(), true);
    } finally {
      await locks.close();
      await proxy.close();
    }
  });
});
