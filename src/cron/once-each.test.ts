import { Cron } from "croner";
import cron from "node-cron";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Holdfast } from "../api/holdfast.js";
import { MemorySpace, memoryStore } from "../stores/memory/index.js";
import { type CronerJob, onceEach, type SkippedRun } from "./index.js";

const EVERY_SECOND = "* * * * * *";

let locks: Holdfast;
let late: Holdfast;
const endings: (() => unknown)[] = [];

beforeEach(() => {
  const space = new MemorySpace();
  locks = new Holdfast(memoryStore({ space }));
  late = new Holdfast(memoryStore({ space }));
});

afterEach(async () => {
  for (const end of endings.splice(0)) await end();
  await Promise.all([locks.close(), late.close()]);
});

/** A job of croner as it is at this moment: real, and not started. */
function jobAt(pattern: string, nowText: string, options = {}): CronerJob {
  const job = new Cron(pattern, { paused: true, timezone: "UTC", ...options });
  endings.push(() => job.stop());
  return {
    options: job.options,
    currentRun: () => new Date(nowText),
    previousRuns: (count, before) => job.previousRuns(count, before),
    getOnce: () => job.getOnce(),
  };
}

it("runs each time of croner and node-cron once, by whichever comes first", async () => {
  const ran: number[] = [];
  const skipped: SkippedRun[] = [];
  const work = (_: unknown, scheduledAt: Date): number => ran.push(scheduledAt.getTime());
  const options = { onSkip: (run: SkippedRun) => skipped.push(run) };
  const job = new Cron(EVERY_SECOND, onceEach(locks, "report", work, options));
  const task = cron.schedule(EVERY_SECOND, onceEach(late, "report", work, options));
  endings.push(
    () => job.stop(),
    () => task.destroy(),
  );
  await expect.poll(() => skipped.length).toBeGreaterThanOrEqual(2);
  expect(new Set(ran).size).toBe(ran.length);
  expect(ran.every((time) => time % 1_000 === 0)).toBe(true);
});

it("knows a run by its scheduled time, however late the call is", async () => {
  const times: string[] = [];
  const skipped: SkippedRun[] = [];
  const run = onceEach(locks, "report", (_, at) => times.push(at.toISOString()));
  const runLate = onceEach(late, "report", () => expect.fail("it has run"), {
    onSkip: (one) => skipped.push(one),
  });
  await run(jobAt("0 3 * * *", "2026-11-17T03:00:00.004Z"));
  await runLate(jobAt("0 3 * * *", "2026-11-17T03:00:02.900Z"));
  await runLate(jobAt("0 3 * * *", "2026-11-17T03:41:00Z"));
  await runLate({ date: new Date("2026-11-17T03:00:00Z") });
  expect(skipped.map(({ name, state }) => `${name} ${state}`)).toEqual(
    Array(3).fill("report:2026-11-17T03:00:00.000Z done"),
  );
  // A job with a date instead of a pattern has that time.
  await run(jobAt("2026-11-18T04:00:00", "2026-11-18T04:00:01Z"));
  expect(times).toEqual(["2026-11-17T03:00:00.000Z", "2026-11-18T04:00:00.000Z"]);
});

it("passes an error on, and lets a later call run that time again", async () => {
  const due = { date: new Date("2026-11-17T03:00:00Z") };
  const error = new Error("the mail server is down");
  const failing = onceEach(locks, "report", () => Promise.reject(error));
  await expect(failing(due)).rejects.toBe(error);
  const tokens: bigint[] = [];
  await onceEach(late, "report", (lease) => tokens.push(lease.token))(due);
  expect(tokens).toEqual([expect.any(BigInt)]);
});

it("refuses jobs whose times differ between replicas, and calls without a time", async () => {
  const run = onceEach(locks, "report", () => {});
  const counted = jobAt(EVERY_SECOND, "2026-11-17T03:00:00Z", { interval: 5 });
  await expect(run(counted)).rejects.toThrow(/interval/);
  await expect(run({} as CronerJob)).rejects.toThrow(/node-cron 4 or croner 10/);
  const idle = { ...jobAt(EVERY_SECOND, ""), currentRun: () => null };
  await expect(run(idle)).rejects.toThrow(/that croner runs now/);
});
