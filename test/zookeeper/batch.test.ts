/** Several locks that are taken, and given back, in one turn of the event loop. */
import assert from "node:assert/strict";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import { loseReply } from "../faults/message-loss.js";
import type { FaultProxy } from "../faults/proxy.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";
import { Znodes } from "./harness.js";
import { ZookeeperTrial } from "./trial.js";

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

  /** A client that has used the names, through a proxy that counts its requests from then on. */
  async function open(path: string): Promise<{
    locks: Holdfast;
    proxy: FaultProxy;
    requests: Map<string, number>;
  }> {
    const proxy = await trial.proxy({ targetPort: server.port, framing: "zookeeper" });
    const locks = await trial.open(`127.0.0.1:${proxy.port}${path}`);
    await releaseAll(await acquireAll(locks));
    const requests = new Map<string, number>();
    proxy.onRequest(({ command }) => {
      if (/^(CREATE|DELETE|MULTI|GETCHILDREN)/.test(command)) {
        requests.set(command, (requests.get(command) ?? 0) + 1);
      }
      return undefined;
    });
    return { locks, proxy, requests };
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
    const { locks, requests } = await open("/joined");
    const before = await locks.mutex("before").acquire();
    requests.clear();
    const leases = await acquireAll(locks);
    assert.deepEqual([...requests], [["MULTI", 1]]);
    for (const { token } of leases) assert.ok(token > before.token);
    await assertHeld(locks, leases);
    requests.clear();
    await releaseAll(leases);
    assert.deepEqual([...requests], [["MULTI", 1]]);
    const again = await acquireAll(locks);
    for (const [index, { token }] of again.entries()) {
      assert.ok(token > (leases[index]?.token ?? token));
    }
    await releaseAll([...again, before]);
    await assertEmpty("/joined");
  });

  it("are granted one by one where the queue of one is gone", async () => {
    const { locks, requests } = await open("/partly");
    await using znodes = new Znodes([server.port]);
    await znodes.remove("/partly/n7");
    const leases = await acquireAll(locks);
    assert.deepEqual([requests.get("MULTI"), requests.get("CREATE2")], [1, NAMES.length + 1]);
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

  it("look at a queue that another client has entered", async () => {
    const { locks, requests } = await open("/entered");
    const other = await trial.open(`127.0.0.1:${server.port}/entered`);
    const held = await other.mutex("n0").acquire();
    requests.clear();
    assert.equal(await locks.mutex("n0").tryAcquire(), null);
    assert.ok(requests.has("GETCHILDREN2"));
    const [waited, free] = [locks.mutex("n0").acquire(), locks.mutex("n1").acquire()];
    assert.equal((await free).state, "held");
    assert.equal((await locks.inspect("n0")).waiters.length, 1);
    await held.release();
    assert.ok((await waited).token > held.token);
  });

  it("leave the data of a queue as it is", async () => {
    const { locks } = await open("/data");
    await using znodes = new Znodes([server.port]);
    await znodes.write("/data/n0", "of another program");
    const second = await trial.open(`127.0.0.1:${server.port}/data`);
    // The first client saw the queue without data.
    for (const one of [locks, second]) {
      for (let count = 0; count < 3; count += 1) await one.mutex("n0").run(() => {});
    }
    assert.equal(await znodes.read("/data/n0"), "of another program");
  });

  it("have tokens that rise where they are of one name", async () => {
    const { locks } = await open("/readers");
    const read = () => locks.readWrite("n0").read.acquire();
    const tokens = (await Promise.all([read(), read(), read()])).map(({ token }) => token);
    assert.equal(new Set(tokens).size, 3);
  });
});
