import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Leftovers } from "./leftovers.mjs";

/** @type {string} */
let home;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  vi.stubEnv("HOME", home);
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(home, { recursive: true, force: true });
});

it("finds nothing after a run that left nothing behind", async () => {
  const leftovers = new Leftovers();
  await leftovers.settle();
  expect(leftovers.clear()).toEqual([]);
});

it.runIf(process.platform === "linux")("finds each kind, and ends processes", async () => {
  const leftovers = new Leftovers();
  const { TMPDIR, HOLDFAST_TEST_MEMORY, ...mark } = leftovers.env;
  writeFileSync(join(TMPDIR ?? "", "a-file"), "");
  mkdirSync(join(HOLDFAST_TEST_MEMORY ?? "", "a-server"));
  writeFileSync(join(home, "an-export"), "");
  mkdirSync(join(home, ".local/state/holdfast"), { recursive: true });
  const marked = spawn("sleep", ["1000"], { detached: true, env: { ...process.env, ...mark } });
  // Like a Redis, which overwrites its environment.
  const cwd = HOLDFAST_TEST_MEMORY;
  const unmarked = spawn("sleep", ["1000"], {
    detached: true,
    env: { PATH: "/usr/bin:/bin" },
    cwd,
  });
  const children = [marked, unmarked];
  const ended = children.map((child) => new Promise((resolve) => child.on("exit", resolve)));
  await Promise.all(children.map((child) => new Promise((resolve) => child.on("spawn", resolve))));
  const found = leftovers.clear();
  const isAbout = (/** @type {string} */ text) => found.some((line) => line.includes(text));
  for (const child of children) expect(isAbout(`process ${child.pid}`)).toBe(true);
  for (const name of ["a-file", "a-server", "an-export", ".local/state/holdfast"]) {
    expect(isAbout(name), name).toBe(true);
  }
  await Promise.all(ended);
});
