import { afterEach, expect, it, vi } from "vitest";
import { connect } from "../../api/connect.js";

const packages = ["ioredis", "iovalkey", "redis"];

afterEach(() => packages.map((name) => vi.doUnmock(name)));

it("refuses versions that are too old, and names the packages", async () => {
  // ioredis 3 exports the client itself, redis 3 has no Sentinel.
  vi.doMock("ioredis", () => ({ default: Object.assign(class {}, { Cluster: class {} }) }));
  vi.doMock("redis", () => ({ default: { createClient: () => {} } }));
  vi.doMock("iovalkey", () => {
    throw new Error("not installed");
  });
  const rule = /needs ioredis 5 or 6, .* the installed ioredis and redis cannot be used/;
  await expect(connect("redis://127.0.0.1:1")).rejects.toThrow(rule);
});
