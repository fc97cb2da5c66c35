/** Sessions that an operator ends, watches that a reconnect loses, and servers without a quorum. */
import assert from "node:assert/strict";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import type { Store } from "../../src/contract/store.js";
import { StoreError } from "../../src/errors/index.js";
import { Ensemble } from "../../src/stores/zookeeper/client.js";
import { openZookeeperStore } from "../../src/stores/zookeeper/index.js";
import { readLocator } from "../../src/stores/zookeeper/layout.js";
import { localRuntime } from "../../src/time/runtime.js";
import { isFull } from "../fixtures/depth.js";
import { waitUntil } from "../servers/wait-until.js";
import {
  startZookeeper,
  startZookeeperEnsemble,
  type ZookeeperEnsemble,
  type ZookeeperServer,
  zookeeperMissing,
} from "../servers/zookeeper.js";
import { untilWaiting } from "../stores/trial.js";
import { ZookeeperTrial } from "./trial.js";

const TTL_MS = 45_000;
/** Less than the time after which a renewal would notice. */
const SOON_MS = 12_000;

const trial = new ZookeeperTrial();
afterEach(() => trial.close());

describe.skipIf(zookeeperMissing() !== null)("on one server", { timeout: 60_000 }, () => {
  let server: ZookeeperServer;
  beforeAll(async () => {
    server = await startZookeeper({ tickMs: 200, maxSessionMs: 60_000 });
  }, 60_000);
  afterAll(() => server.close());

  const open = () => trial.open(`127.0.0.1:${server.port}/locks`);

  /** Ends the session of a grant on a connection of its own, as an operator's tool would. */
  async function endSession(locator: string): Promise<void> {
    const found = readLocator(locator);
    assert.ok(found);
    const settings = { tls: null, chroot: "", credentials: [] };
    const ensemble = new Ensemble([server.address], settings, localRuntime);
    const { key, timeoutMs } = found;
    const connection = await ensemble.connect({ key, timeoutMs }, SOON_MS);
    await connection.endSession();
  }

  it("ended by an operator, a session loses its leases, and its waiters queue again", async () => {
    const store = await openZookeeperStore(new URL(`zookeeper://127.0.0.1:${server.port}/locks`));
    const locators = recordLocators(store);
    const locks = new Holdfast(store, { ttlMs: TTL_MS });
    const others = await open();
    try {
      const blocker = await others.mutex("waited").acquire({ ttlMs: TTL_MS });
      const lease = await locks.mutex("held").acquire();
      const waiting = locks.mutex("waited").acquire();
      await untilWaiting(others, "waited");
      await endSession(locators[0] ?? "");
      const what = "the lease is lost";
      await waitUntil(() => lease.state === "lost", { what, timeoutMs: SOON_MS });
      const reason = (lease.signal.reason as { reason?: string }).reason ?? "";
      assert.ok(["missing", "session_ended"].includes(reason), reason);
      await (await others.mutex("held").acquire({ waitMs: SOON_MS })).release();
      await blocker.release();
      const next = await waiting;
      assert.ok(next.token > blocker.token);
      await next.release();
    } finally {
      await locks.close();
    }
  });

  it("lets no lease last longer than itself, whatever a handle says", async () => {
    const lease = await (await open()).mutex("handed").acquire({ transferable: true });
    const [prefix, text = ""] = lease.detach().split(".");
    const handed = JSON.parse(Buffer.from(text, "base64url").toString());
    const { ttlMs } = handed.claim;
    handed.claim.ttlMs = 10 * ttlMs;
    const forged = `${prefix}.${Buffer.from(JSON.stringify(handed)).toString("base64url")}`;
    const resumed = await (await open()).resume(forged);
    assert.ok(resumed);
    assert.ok(resumed.remainingMs() < ttlMs, `${resumed.remainingMs()} ms`);
    await resumed.renew();
    assert.ok(resumed.remainingMs() < ttlMs, `${resumed.remainingMs()} ms`);
    await resumed.release();
  });

  it.for([
    ["the server tells it at the reconnect", false],
    ["no event arrives", true],
  ] as const)("a change while its connection is broken wakes a waiter: %s", async ([, isLost]) => {
    const proxy = await trial.proxy({ targetPort: server.port, framing: "zookeeper" });
    const [locks, others] = [await trial.open(`127.0.0.1:${proxy.port}/locks`), await open()];
    const blocker = await others.mutex("broken").acquire({ ttlMs: TTL_MS });
    const waiting = locks.mutex("broken").acquire({ ttlMs: TTL_MS });
    await untilWaiting(others, "broken");
    await waitUntil(async () => /^2 connections watching/.test(await server.ask("wchs")), {
      what: "the holder watches its entry, and the waiter too",
    });
    let events = 0;
    proxy.onReply(({ pushed }) => {
      if (!pushed) return undefined;
      events += 1;
      return isLost ? "omit" : undefined;
    });
    proxy.cut();
    await blocker.release();
    await proxy.heal();
    const next = await waiting;
    assert.ok(next.token > blocker.token);
    assert.ok(events > 0, "the server restored the watch, and told the change");
    await next.release();
  });
});

/** The locators of all grants, in their order. */
function recordLocators(store: Store): string[] {
  const locators: string[] = [];
  const acquire = store.acquire.bind(store);
  store.acquire = async (claim, wait) => {
    const result = await acquire(claim, wait);
    if (result.type === "granted" && result.locator) locators.push(result.locator);
    return result;
  };
  return locators;
}

// A server that is cut off takes long to find out, on a busy machine.
describe.runIf(isFull && zookeeperMissing() === null)(
  "a read-only server",
  {
    timeout: 120_000,
  },
  () => {
    let ensemble: ZookeeperEnsemble;
    let alone: ZookeeperServer;
    let leader: ZookeeperServer;
    beforeAll(async () => {
      const properties = ["readonlymode.enabled=true"];
      ensemble = await startZookeeperEnsemble(3, { tickMs: 200, maxSessionMs: 60_000, properties });
    }, 60_000);
    afterAll(() => ensemble[Symbol.asyncDispose]());

    it("grants nothing, and clients go on at the other servers", async () => {
      leader = await ensemble.leader();
      alone = (await ensemble.followers())[0] ?? leader;
      const both = `127.0.0.1:${alone.port}/locks?host=127.0.0.1:${leader.port}`;
      const locks = await trial.open(both);
      const lease = await locks.mutex("kept").acquire({ ttlMs: TTL_MS });
      ensemble.cutOff(alone);
      const what = "the server serves reads only";
      await waitUntil(async () => (await alone.mode()) === "read-only", {
        what,
        timeoutMs: 60_000,
      });
      const there = await trial.open(`127.0.0.1:${alone.port}/locks`);
      const refused = there.mutex("kept").acquire({ storeTimeoutMs: SOON_MS });
      await assert.rejects(refused, (error) => error instanceof StoreError);
      await lease.renew();
      assert.equal(lease.state, "held");
      assert.equal(await lease.release(), true);
      await (await locks.mutex("more").acquire({ ttlMs: TTL_MS })).release();
    });
  },
);
