/**
 * A queue that has had 2^31 entries. The counter of sequence numbers does not go on then: a new
 * entry gets the number of the last one again, or a negative number if it comes right behind
 * another one.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, it } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { waitUntil } from "../servers/wait-until.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";
import { PATCHABLE, setChildCounter } from "../servers/zookeeper-snapshot.js";
import { Znodes } from "./harness.js";
import { ZookeeperTrial } from "./trial.js";

const LAST = 2 ** 31 - 1;
const QUEUE = "/locks/m";
const ROUNDS = 30;

describe.skipIf(zookeeperMissing() !== null)("a queue at its last number", () => {
  let server: ZookeeperServer;
  const trial = new ZookeeperTrial();
  beforeEach(async () => {
    // An empty queue stays where it is.
    const properties = [...PATCHABLE, "znode.container.checkIntervalMs=3600000"];
    server = await startZookeeper({ tickMs: 200, maxSessionMs: 60_000, properties });
  }, 120_000);
  afterEach(async () => {
    await trial.close();
    await server.close();
  });

  const open = () => trial.open(`127.0.0.1:${server.port}/locks`);

  /** Clients of a queue whose next entry gets this number. */
  async function openAt(counter: number, count: number): Promise<Holdfast[]> {
    const maker = await open();
    await (await maker.mutex("m").acquire()).release();
    await trial.close();
    await server.restart({ keepData: true });
    await server.kill();
    setChildCounter(join(server.dir, "data"), QUEUE, counter);
    await server.start();
    return Promise.all(Array.from({ length: count }, open));
  }

  /** The sequence numbers in the queue. */
  async function numbers(znodes: Znodes): Promise<number[]> {
    const names = await znodes.below(QUEUE);
    return names.map((name) => Number(/-lock-(-?\d+)$/.exec(name)?.[1]));
  }

  it("has one holder, in whatever order the server lists its entries", {
    timeout: 180_000,
  }, async () => {
    const [first, second] = (await openAt(LAST - 1, 2)) as [Holdfast, Holdfast];
    await using znodes = new Znodes([server.port]);
    const before = await first.mutex("m").acquire();
    assert.deepEqual(await numbers(znodes), [LAST - 1]);
    await before.release();
    let refused = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const lease = await first.mutex("m").acquire();
      assert.deepEqual(await numbers(znodes), [LAST]);
      const other = await second.mutex("m").tryAcquire();
      if (other === null) refused += 1;
      await other?.release();
      await lease.release();
    }
    assert.equal(refused, ROUNDS);
  });

  it("serves clients that come together one at a time, in the order of their tokens", {
    timeout: 180_000,
  }, async () => {
    const clients = await openAt(LAST, 8);
    let inside = 0;
    let most = 0;
    let last = 0n;
    const turns = clients.map(async (locks) => {
      for (let turn = 0; turn < 10; turn += 1) {
        await locks.mutex("m").run(async ({ token }) => {
          inside += 1;
          most = Math.max(most, inside);
          assert.ok(token > last, `${token} after ${last}`);
          last = token;
          await nextTurn();
          inside -= 1;
        });
      }
    });
    await Promise.all(turns);
    assert.equal(most, 1);
  });

  it("lets a client wait behind all entries that came before, whatever their numbers are", {
    timeout: 180_000,
  }, async () => {
    const [holder, locks] = (await openAt(LAST, 2)) as [Holdfast, Holdfast];
    await using znodes = new Znodes([server.port]);
    const held = await holder.mutex("m").acquire();
    // Behind an entry that is not written yet, an entry gets a negative number.
    const others = await znodes.makeTogether(
      Array.from({ length: 20 }, (_, index) => `${QUEUE}/other-${index}-lock-`),
    );
    const seen = new Set(await numbers(znodes));
    assert.ok(seen.has(LAST) && seen.has(-LAST - 1), `${[...seen]}`);
    // Those with negative numbers came behind the holder all the same.
    const { holders } = await locks.inspect("m");
    assert.deepEqual(
      holders.map(({ token }) => token),
      [held.token],
    );
    const waiting = locks.mutex("m").acquire();
    await waitUntil(async () => (await znodes.below(QUEUE)).length === 22, { what: "the waiter" });
    assert.equal(await held.release(), true);
    for (const path of others) {
      assert.equal(await locks.mutex("m").tryAcquire(), null);
      await znodes.remove(path);
    }
    const lease = await waiting;
    assert.equal(await lease.release(), true);
  });
});
