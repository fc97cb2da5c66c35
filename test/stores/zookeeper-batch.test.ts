/** Several locks that are taken, and given back, in one turn of the event loop. */
import assert from "node:assert/strict";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import { loseReply } from "../faults/message-loss.js";
import type { FaultProxy } from "../faults/proxy.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";
import { Znodes } from "./zookeeper-harness.js";
import { ZookeeperTrial } from "./zookeeper-trial.js";

const NAMES = Array.from({ length: 20 }, (_, index) => `n${index}`);

describe.skipIf(zookeeperMissing() !== null)("locks of one turn", { timeout: 60_000 }, () => {
  let server: ZookeeperServer;
  const trial = new ZookeeperTrial();
  beforeAll(async () => {
    server = await startZookeeper({ tickMs: 200, maxSessionMs: 60_000 });
  });
  afterEach(() => trial.close());
  afterAll(() => server.close());

  const acquireAll = (locks: Holdfast): Promise<Lease[]> =>
    Promise.all(NAMES.map((name) => locks.mutex(name).acquire()));

  const releaseAll = async (leases: readonly Lease[]): Promise<void> => {
    const released = await Promise.all(leases.map((lease) => lease.release()));
    assert.deepEqual(new Set(released), new Set([true]));
  };

  /** A client that has used the names, through a proxy that counts its writes from then on. */
  async function open(path: string): Promise<{
    locks: Holdfast;
    proxy: FaultProxy;
    writes: Map<string, number>;
  }> {
    const proxy = await trial.proxy({ targetPort: server.port, framing: "zookeeper" });
    const locks = await trial.open(`127.0.0.1:${proxy.port}${path}`);
    await releaseAll(await acquireAll(locks));
    const writes = new Map<string, number>();
    proxy.onRequest(({ command }) => {
      if (!/^(CREATE|DELETE|MULTI)/.test(command)) return undefined;
      writes.set(command, (writes.get(command) ?? 0) + 1);
      return undefined;
    });
    return { locks, proxy, writes };
  }

  /** Every name has one holder, and no other entry. */
  async function assertHeld(locks: Holdfast, leases: readonly Lease[]): Promise<void> {
    for (const lease of leases) {
      const { holders, waiters } = await locks.inspect(lease.name);
      const tokens = holders.map(({ token }) => token);
      assert.deepEqual([tokens, waiters], [[lease.token], []]);
    }
  }

  async function assertEmpty(path: string): Promise<void> {
    await using znodes = new Znodes([server.port]);
    const entries = (await znodes.below(path)).filter((one) => one.split("/").length > 3);
    assert.deepEqual(entries, []);
  }

  it("are one transaction, and their releases another", async () => {
    const { locks, writes } = await open("/joined");
    const before = await locks.mutex("before").acquire();
    writes.clear();
    const leases = await acquireAll(locks);
    assert.deepEqual([...writes], [["MULTI", 1]]);
    for (const { token } of leases) assert.ok(token > before.token);
    await assertHeld(locks, leases);
    writes.clear();
    await releaseAll(leases);
    assert.deepEqual([...writes], [["MULTI", 1]]);
    const again = await acquireAll(locks);
    for (const [index, { token }] of again.entries()) {
      assert.ok(token > (leases[index]?.token ?? token));
    }
    await releaseAll([...again, before]);
    await assertEmpty("/joined");
  });

  it("are granted one by one where the queue of one is gone", async () => {
    const { locks, writes } = await open("/partly");
    await using znodes = new Znodes([server.port]);
    await znodes.remove("/partly/n7");
    const leases = await acquireAll(locks);
    assert.deepEqual([writes.get("MULTI"), writes.get("CREATE2")], [1, NAMES.length + 1]);
    await assertHeld(locks, leases);
    // Another program removes an entry: its release says so, and the others are removed.
    const [gone] = await znodes.below("/partly/n3");
    assert.ok(gone);
    await znodes.remove(gone);
    await Promise.all(leases.map((lease) => lease.release()));
    await assertEmpty("/partly");
  });

  it.for(["acquires", "releases"] as const)(
    "are found again when the answer to their %s is lost",
    async (kind) => {
      const { locks, proxy } = await open(`/lost-${kind}`);
      const match = { match: "MULTI" };
      const loss = kind === "acquires" ? loseReply(proxy, match) : null;
      const leases = await acquireAll(locks);
      await loss?.struck;
      await assertHeld(locks, leases);
      const second = kind === "releases" ? loseReply(proxy, match) : null;
      await releaseAll(leases);
      await second?.struck;
      await assertEmpty(`/lost-${kind}`);
    },
  );

  it("have tokens that rise where they are of one name", async () => {
    const { locks } = await open("/readers");
    const read = () => locks.readWrite("n0").read.acquire();
    const tokens = (await Promise.all([read(), read(), read()])).map(({ token }) => token);
    assert.equal(new Set(tokens).size, 3);
  });
});
