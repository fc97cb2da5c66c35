import cron, { type ScheduledTask, type TaskContext } from "node-cron";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import { Holdfast } from "../api/holdfast.js";
import { LeaseLostError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import { MemorySpace, memoryStore } from "../stores/memory/index.js";
import { cronCoordinator, type SkippedRun } from "./index.js";

/** The machine may be busy. */
const EVERY_SECOND = "* * * * * *";
const KEY = "report:2026-11-17T03:00:00.000Z";
const TTL_MS = 30_000;

let north: Holdfast;
let south: Holdfast;
const tasks: ScheduledTask[] = [];

beforeEach(() => {
  const space = new MemorySpace();
  north = new Holdfast(memoryStore({ space }), { meta: { label: "north" } });
  south = new Holdfast(memoryStore({ space }), { meta: { label: "south" } });
});

afterEach(async () => {
  for (const task of tasks.splice(0)) await task.destroy();
  await Promise.all([north.close(), south.close()]);
});

const eventOf = (task: ScheduledTask, event: Parameters<ScheduledTask["once"]>[0]) =>
  new Promise<TaskContext>((resolve) => task.once(event, resolve));

describe("asked by node-cron", () => {
  it("runs each scheduled time in one of two replicas, and tells the other", async () => {
    const ran: string[] = [];
    const leases: (Lease | null)[] = [];
    const skipped: string[] = [];
    for (const [replica, locks] of Object.entries({ north, south })) {
      const coordinator = cronCoordinator(locks);
      const work = (context: TaskContext): void => {
        ran.push(context.date.toISOString());
        leases.push(coordinator.leaseOf(context));
      };
      const timezone = replica === "north" ? "Asia/Shanghai" : "Europe/Paris";
      const options = { name: "report", distributed: true, runCoordinator: coordinator, timezone };
      const task = cron.schedule(EVERY_SECOND, work, options);
      task.on("execution:skipped", ({ reason, date }) => {
        skipped.push(`${date.toISOString()} ${reason}`);
      });
      tasks.push(task);
    }

    await expect.poll(() => skipped.length).toBeGreaterThanOrEqual(2);
    expect(new Set(ran).size).toBe(ran.length);
    // A replica skips what the other one runs, now or a moment later.
    const [first = "", second = ""] = skipped.map((one) => one.replace(" not-elected", ""));
    await expect.poll(() => ran).toEqual(expect.arrayContaining([first, second]));
    expect(leases[0]?.token).toBeTypeOf("bigint");
    expect(leases[0]?.name).toBe(`report:${ran[0]}`);
  });

  it("skips a time where the store fails, and says why", async () => {
    const coordinator = cronCoordinator(north);
    await north.close();
    const errors: unknown[] = [];
    const quiet = (): void => {};
    const task = cron.schedule(EVERY_SECOND, () => expect.fail("it must not run"), {
      name: "report",
      distributed: true,
      runCoordinator: coordinator,
      logger: { info: quiet, warn: quiet, debug: quiet, error: (...all) => errors.push(...all) },
    });
    tasks.push(task);
    const { reason } = await eventOf(task, "execution:skipped");
    expect(reason).toBe("coordinator-error");
    expect(errors).toContainEqual(expect.objectContaining({ code: "HF_CLOSED" }));
  });
});

describe("a coordinator", () => {
  it("remembers a run that has ended before a late replica asks", async () => {
    const skipped: SkippedRun[] = [];
    const first = cronCoordinator(north);
    const late = cronCoordinator(south, { onSkip: (run) => skipped.push(run) });
    expect(await first.shouldRun(KEY, TTL_MS)).toBe(true);
    expect(await late.shouldRun(KEY, TTL_MS)).toBe(false);
    await first.onComplete(KEY);
    expect(await late.shouldRun(KEY, TTL_MS)).toBe(false);
    expect(skipped.map(({ state, by }) => [state, by?.label])).toEqual([
      ["running", "north"],
      ["done", "north"],
    ]);
    // The next scheduled time is another run.
    expect(await late.shouldRun(KEY.replace("03:00", "04:00"), TTL_MS)).toBe(true);
  });

  it("takes over a run that ended without its end, where it waits", async () => {
    expect(await cronCoordinator(north).shouldRun(KEY, TTL_MS)).toBe(true);
    const waiting = cronCoordinator(south, { waitMs: 60_000 });
    const takesOver = waiting.shouldRun(KEY, TTL_MS);
    await expect.poll(async () => (await south.inspect(KEY, "once")).waiters.length).toBe(1);
    await north.close();
    expect(await takesOver).toBe(true);
    await waiting.onComplete(KEY);
  });

  it("says that a run lost its lease", async () => {
    const coordinator = cronCoordinator(north, { ttlMs: 20_000 });
    await coordinator.shouldRun(KEY, TTL_MS);
    const task = { name: "report" };
    const lease = coordinator.leaseOf({ date: new Date("2026-11-17T03:00:00Z"), task });
    expect(lease?.remainingMs()).toBeLessThanOrEqual(20_000);
    await south.revoke(KEY, { token: lease?.token ?? 0n, reason: "stuck" }, "once");
    await expect.poll(() => lease?.signal.aborted).toBe(true);
    await expect(coordinator.onComplete(KEY)).rejects.toThrow(LeaseLostError);
    expect(await cronCoordinator(south).shouldRun(KEY, TTL_MS)).toBe(true);
  });

  it.each([
    ["after a day", {}, 86_400_000],
    ["after maxHoldMs", { maxHoldMs: 60_000 }, 60_000],
  ])("ends a run whose end is never told %s", async (_, options, limitMs) => {
    const runtime = new ManualRuntime();
    const space = new MemorySpace(runtime);
    const first = new Holdfast(memoryStore({ space }));
    const coordinator = cronCoordinator(first, options);
    expect(await coordinator.shouldRun(KEY, TTL_MS)).toBe(true);
    const task = { name: "report" };
    const lease = coordinator.leaseOf({ date: new Date("2026-11-17T03:00:00Z"), task });
    const signal = lease?.signal;
    await runtime.advance(limitMs - TTL_MS / 10);
    expect([lease?.state, signal?.aborted]).toEqual(["held", false]);
    await runtime.advance(TTL_MS / 10);
    expect(lease?.state).toBe("lost");
    expect(signal?.reason).toMatchObject({ code: "HF_LEASE_LOST", reason: "max_hold" });
    const second = new Holdfast(memoryStore({ space }));
    expect(await cronCoordinator(second).shouldRun(KEY, TTL_MS)).toBe(true);
    await expect(coordinator.onComplete(KEY)).rejects.toThrow(LeaseLostError);
    await Promise.all([first.close(), second.close()]);
  });

  it("knows nothing of other keys, and refuses unknown options", async () => {
    const coordinator = cronCoordinator(north);
    await coordinator.onComplete(KEY);
    expect(coordinator.leaseOf({ date: new Date() })).toBeNull();
    expect(() => cronCoordinator(north, { keepsMs: 1 } as object)).toThrow(/keepMs/);
  });
});
