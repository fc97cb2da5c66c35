/** Replicas of a scheduled job: processes whose clocks differ, and one that dies in the middle. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isFull } from "../fixtures/depth.js";

const REPLICA = fileURLToPath(new URL("./cron-replica.mjs", import.meta.url));
const PATIENCE = { timeout: 60_000 };

let folder: string;
let lines: string[];
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-cron-"));
  lines = [];
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

function start(
  replica: string,
  clock: number | string,
  scheduler: string,
  workMs = 0,
): ChildProcess {
  const args = [`file:${folder}/locks.db`, replica, `${clock}`, scheduler, `${workMs}`];
  const child = spawn(process.execPath, [REPLICA, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  children.push(child);
  return child;
}

/** The runs in lines with this word, as the name and the time of the job. */
const runsWith = (word: string): string[] =>
  lines.filter((line) => line.includes(word)).map((line) => line.slice(line.indexOf("job:")));

const PAIRS: readonly (readonly [string, string])[] = [
  ["node-cron", "croner"],
  ...(isFull
    ? ([
        ["croner", "node-cron"],
        ["node-cron", "node-cron"],
        ["croner", "croner"],
      ] as const)
    : []),
];

describe.each(PAIRS)("by %s and %s", (scheduler, other) => {
  it("a replica whose clock is 2 s late runs nothing that has ended before", async () => {
    start("early", 0, scheduler);
    start("late", -2_000, other);
    // The late one comes 2 s after the early one, and finds its runs done.
    await expect.poll(() => runsWith("late done by early").length, PATIENCE).toBeGreaterThan(1);
    const begun = runsWith("begins");
    expect(begun.length).toBeGreaterThan(1);
    expect(begun.filter((run, index) => begun.indexOf(run) !== index)).toEqual([]);
  });

  it("a run whose process is killed is taken over by a replica that waits", async () => {
    // The clocks of both are behind by far, and the next scheduled time comes 1.5 s later.
    const clock = "2026-01-01T00:00:18.500Z";
    const run = "job:2026-01-01T00:00:20.000Z";
    const first = start("first", clock, scheduler, 600_000);
    await expect.poll(() => lines, PATIENCE).toContain(`first begins: ${run}`);
    start("second", clock, other, 1);
    await expect.poll(() => lines, PATIENCE).toContain("second ready");
    first.kill("SIGKILL");
    await expect.poll(() => lines, PATIENCE).toContain(`second ends: ${run}`);
    expect(lines.filter((line) => line === `second begins: ${run}`)).toHaveLength(1);
  });
});
