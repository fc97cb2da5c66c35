/** Clients that a URL opens when ioredis is not installed, and a missing server. */
import assert from "node:assert/strict";
import { expect, it, vi } from "vitest";
import { connect } from "../../src/api/connect.js";
import { StoreError } from "../../src/errors/index.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { onFreePorts } from "../servers/free-port.js";
import { startRedis } from "../servers/redis.js";
import { closeAll, startAll } from "../servers/server-process.js";

vi.mock("ioredis", () => {
  throw new Error("not installed");
});

/** A port without a server. */
const deadPort = (): Promise<number> => onFreePorts(1, async ([port = 0]) => port);

it("a URL without a server fails in time and names the address", async () => {
  const port = await deadPort();
  const error = await connect(`redis://127.0.0.1:${port}`).then(
    (locks) => locks.mutex("m").acquire({ storeTimeoutMs: 100 }),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof StoreError, String(error));
  expect(error.message).toContain(`127.0.0.1:${port}`);
  expect(error.message).toMatch(/could not connect within 5000 ms/);
  expect(error.outcome).toBe("not_applied");
});

it("a URL is opened by iovalkey where it is the only client", async () => {
  vi.doMock("redis", () => {
    throw new Error("not installed");
  });
  const server = await startRedis();
  try {
    await using locks = await connect(server.url);
    const lease = await locks.mutex("m").acquire();
    expect(await lease.release()).toBe(true);
  } finally {
    vi.doUnmock("redis");
    await server.close();
  }
});

it("a URL with one missing node works at once without it", async () => {
  const servers = await startAll([startRedis(), startRedis()]);
  const ports = [await deadPort(), ...servers.map(({ port }) => port)];
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
  try {
    const stopwatch = new Stopwatch();
    await using locks = await connect(`redlock://${hosts}?bootstrap=now`);
    const lease = await locks.mutex("m").acquire();
    stopwatch.expectLessThan(4_000);
    assert.equal(await lease.release(), true);
  } finally {
    await closeAll(servers);
  }
});
