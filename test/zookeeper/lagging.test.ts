/** A server that has not heard from its leader for a while shows the znodes of the past. */
import assert from "node:assert/strict";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { zookeeperStore } from "../../src/stores/zookeeper/index.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import {
  startZookeeperEnsemble,
  type ZookeeperEnsemble,
  type ZookeeperServer,
  zookeeperMissing,
} from "../servers/zookeeper.js";

const TTL_MS = 10_000;
const NO_NODE = -101;

describe.skipIf(zookeeperMissing() !== null)("a server behind its leader", () => {
  let ensemble: ZookeeperEnsemble;
  let leader: ZookeeperServer;
  let behind: ZookeeperServer;
  const opened: (Holdfast | FaultProxy)[] = [];
  beforeAll(async () => {
    ensemble = await startZookeeperEnsemble(3, { tickMs: 1_000 });
  }, 60_000);
  afterEach(async () => {
    await ensemble.heal();
    for (const one of opened.splice(0)) await one.close();
  });
  afterAll(() => ensemble[Symbol.asyncDispose]());

  /**
   * A client whose watches are at a follower, which then hears no more from its leader. `missed`
   * resolves when that follower has answered that it does not have the znode of an entry.
   */
  async function fallBehind(): Promise<{ locks: Holdfast; missed: Promise<void> }> {
    leader = await ensemble.leader();
    behind = (await ensemble.followers())[0] ?? leader;
    const near = await startProxy({ targetPort: behind.port, framing: "zookeeper" });
    const far = await startProxy({ targetPort: leader.port });
    far.refuse();
    const servers = `127.0.0.1:${near.port},127.0.0.1:${far.port}/lag`;
    const locks = new Holdfast(zookeeperStore({ servers }));
    opened.push(locks, near, far);
    // Opens both sessions of the client: the one that holds, and the one that watches.
    await (await locks.mutex("warm").acquire({ ttlMs: TTL_MS })).release();
    await locks.inspect("warm");
    const missed = new Promise<void>((resolve) => {
      near.onReply(({ to, value }) => {
        if (to?.command === "GETDATA" && value === NO_NODE) resolve();
        return undefined;
      });
    });
    ensemble.link(behind, leader).stall("replies");
    await far.heal();
    return { locks, missed };
  }

  function atTheLeader(): Holdfast {
    const locks = new Holdfast(zookeeperStore({ servers: `127.0.0.1:${leader.port}/lag` }));
    opened.push(locks);
    return locks;
  }

  it("does not make a waiter hold beside a holder that it has not heard of", async () => {
    const { locks, missed } = await fallBehind();
    const others = atTheLeader();
    const held = await others.mutex("late").acquire({ ttlMs: TTL_MS });
    const granted: bigint[] = [];
    const waiting = locks.mutex("late").acquire({ ttlMs: TTL_MS });
    void waiting.then(({ token }) => granted.push(token));
    await missed;
    const { holders, waiters } = await others.inspect("late");
    assert.deepEqual([holders.length, waiters.length], [1, 1]);
    assert.equal(held.state, "held");
    assert.deepEqual(granted, [], "two clients hold one mutex");
    await held.release();
    const lease = await waiting;
    assert.ok(lease.token > held.token);
    await lease.release();
  }, 60_000);

  it("does not tell a holder that its entry is missing", async () => {
    const { locks, missed } = await fallBehind();
    const lease = await locks.mutex("own").acquire({ ttlMs: TTL_MS });
    await missed;
    await atTheLeader().inspect("own");
    assert.equal(lease.state, "held");
    await lease.release();
  }, 60_000);
});
