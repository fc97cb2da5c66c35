import { afterEach, expect, it, vi } from "vitest";
import { Holdfast } from "../index.js";
import { memoryStore } from "../stores/memory/index.js";

// The advice of docs/guide.md for tests with fake timers.

afterEach(() => vi.useRealTimers());

it("a lease stays held when the time moves on asynchronously", async () => {
  vi.useFakeTimers();
  const locks = new Holdfast(memoryStore());
  const lease = await locks.mutex("a").acquire({ ttlMs: 3_000 });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lease.state).toBe("held");
  vi.advanceTimersByTime(4_000);
  expect(lease.state).toBe("lost");
  await locks.close();
});

it("a wait ends when the time moves on", async () => {
  vi.useFakeTimers();
  const locks = new Holdfast(memoryStore());
  await locks.mutex("a").acquire();
  const refused = expect(locks.mutex("a").acquire({ waitMs: 5_000 })).rejects.toThrow("5");
  await vi.advanceTimersByTimeAsync(5_000);
  await refused;
  await locks.close();
});

it("a lease does not mind a fake date", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: 0 });
  const locks = new Holdfast(memoryStore());
  const lease = await locks.mutex("a").acquire({ ttlMs: 3_000 });
  vi.setSystemTime(1e12);
  expect(await lease.release()).toBe(true);
  await locks.close();
});
