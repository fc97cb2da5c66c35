/** A server that restarts: with its data, without it, and with data of the past. */
import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "vitest";
import type { Lease } from "../../src/lease/lease.js";
import { waitUntil } from "../servers/wait-until.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";
import { ZookeeperTrial } from "./zookeeper-trial.js";

const TTL_MS = 10_000;

describe.skipIf(zookeeperMissing() !== null)("a server that restarts", { timeout: 60_000 }, () => {
  let server: ZookeeperServer;
  const trial = new ZookeeperTrial();
  beforeEach(async () => {
    server = await startZookeeper({ tickMs: 200, maxSessionMs: 60_000 });
  });
  afterEach(async () => {
    await trial.close();
    await server.close();
  });

  const open = () => trial.open(`127.0.0.1:${server.port}/locks`);

  /** Resolves when the lease is lost, which no deadline allowed to last for more than its ttl. */
  async function lost(lease: Lease): Promise<void> {
    const sinceMs = performance.now();
    let deadlineMs = 0;
    const isLost = (): boolean => {
      if (lease.state !== "held") return true;
      deadlineMs = Math.max(deadlineMs, performance.now() + lease.remainingMs());
      return false;
    };
    await waitUntil(isLost, { what: "the lease is lost", timeoutMs: 3 * TTL_MS });
    assert.ok(deadlineMs < sinceMs + TTL_MS);
  }

  it("with its data keeps leases and waiters", async () => {
    const locks = await open();
    const lease = await locks.mutex("m").acquire({ ttlMs: TTL_MS });
    const waiting = (await open()).mutex("m").acquire({ ttlMs: TTL_MS });
    await waitUntil(async () => (await locks.inspect("m")).waiters.length === 1, {
      what: "the second client waits",
    });
    await server.restart({ keepData: true });
    await lease.renew();
    assert.equal(lease.state, "held");
    await lease.release();
    const next = await waiting;
    assert.ok(next.token > lease.token);
    await next.release();
  });

  it("without its data loses the lease in time, and the waiter queues again", async () => {
    const locks = await open();
    const lease = await locks.mutex("m").acquire({ ttlMs: TTL_MS });
    const waiting = (await open()).mutex("m").acquire({ ttlMs: TTL_MS });
    await waitUntil(async () => (await locks.inspect("m")).waiters.length === 1, {
      what: "the second client waits",
    });
    await server.restart({ keepData: false });
    await Promise.all([lost(lease), waiting.then((next) => next.release())]);
    await (await locks.mutex("m").acquire({ ttlMs: TTL_MS })).release();
  });

  it("with data of the past ends sessions that saw more, so that no old entry stays", async () => {
    const locks = await open();
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
    const again = await (await open()).mutex("released").acquire({ ttlMs: TTL_MS, waitMs: 20_000 });
    await again.release();
  });
});
