/** A server that restarts: with its data, without it, and with data of the past. */
import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import { waitUntil } from "../servers/wait-until.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";
import { untilWaiting } from "../stores/trial.js";
import { ZookeeperTrial } from "./trial.js";

const TTL_MS = 10_000;

/** A server, and clients of it. */
class Scene extends ZookeeperTrial {
  readonly server: ZookeeperServer;

  private constructor(server: ZookeeperServer) {
    super();
    this.server = server;
    this.closeLater(() => server.close());
  }

  static async start(): Promise<Scene> {
    return new Scene(await startZookeeper({ tickMs: 200, maxSessionMs: 60_000 }));
  }

  client(): Promise<Holdfast> {
    return this.open(`127.0.0.1:${this.server.port}/locks`);
  }
}

describe.skipIf(zookeeperMissing() !== null).concurrent("a server that restarts", () => {
  /** Resolves when the lease is lost, which no deadline allowed to last for more than its ttl. */
  async function lost(lease: Lease): Promise<void> {
    const sinceMs = performance.now();
    let deadlineMs = 0;
    const isLost = (): boolean => {
      if (lease.state !== "held") return true;
      deadlineMs = Math.max(deadlineMs, performance.now() + lease.remainingMs());
      return false;
    };
    await waitUntil(isLost, { what: "the lease is lost" });
    assert.ok(deadlineMs < sinceMs + TTL_MS);
  }

  it("with its data keeps leases and waiters", async () => {
    await using scene = await Scene.start();
    const { server } = scene;
    const locks = await scene.client();
    const lease = await locks.mutex("m").acquire({ ttlMs: TTL_MS });
    const waiting = (await scene.client()).mutex("m").acquire({ ttlMs: TTL_MS });
    await untilWaiting(locks, "m");
    await server.restart({ keepData: true });
    await lease.renew();
    assert.equal(lease.state, "held");
    await lease.release();
    const next = await waiting;
    assert.ok(next.token > lease.token);
    await next.release();
  });

  it("without its data loses the lease in time, and the waiter queues again", async () => {
    await using scene = await Scene.start();
    const { server } = scene;
    const locks = await scene.client();
    const lease = await locks.mutex("m").acquire({ ttlMs: TTL_MS });
    const waiting = (await scene.client()).mutex("m").acquire({ ttlMs: TTL_MS });
    await untilWaiting(locks, "m");
    await server.restart({ keepData: false });
    await Promise.all([lost(lease), waiting.then((next) => next.release())]);
    await (await locks.mutex("m").acquire({ ttlMs: TTL_MS })).release();
  });

  it("with data of the past ends sessions that saw more, so that no old entry stays", async () => {
    await using scene = await Scene.start();
    const { server } = scene;
    const locks = await scene.client();
    const kept = await locks.mutex("kept").acquire({ ttlMs: TTL_MS });
    const released = await locks.mutex("released").acquire({ ttlMs: TTL_MS });
    await server.stop();
    const data = join(server.dir, "data");
    await cp(data, `${data}-then`, { recursive: true });
    await server.start();
    await kept.renew();
    await released.release();
    const later = await locks.mutex("later").acquire({ ttlMs: TTL_MS });
    await server.stop();
    await rm(data, { recursive: true });
    await cp(`${data}-then`, data, { recursive: true });
    await server.start();
    await Promise.all([lost(kept), lost(later)]);
    const again = await (await scene.client())
      .mutex("released")
      .acquire({ ttlMs: TTL_MS, waitMs: 20_000 });
    await again.release();
  });
});
