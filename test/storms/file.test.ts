import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Holdfast } from "../../src/index.js";
import { openSqlite } from "../../src/stores/file/client.js";
import { fileStore } from "../../src/stores/file/index.js";
import { type ControlledProcess, startProcess } from "../faults/process.js";
import { isFull } from "../fixtures/depth.js";
import { randomOf } from "../fixtures/seed.js";
import { waitUntil } from "../servers/wait-until.js";

const PROCESSES = 8;
const FAULTS = isFull ? 200 : 50;
const TTL_MS = 1_000;
/** All but the last token. */
const LEFT = "SELECT * FROM name WHERE key <> ''";

const random = randomOf("file storm");

let folder: string;
let path: string;
let log: string;
/** All processes, from their start on, so that they end with the test in any case. */
let workers: ControlledProcess[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-storm-"));
  path = join(folder, "locks.db");
  log = join(folder, "log");
  writeFileSync(log, "");
  await Promise.all(Array.from({ length: PROCESSES }, (_, index) => start(index)));
});

afterEach(async () => {
  await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  workers = [];
  rmSync(folder, { recursive: true, force: true });
});

async function start(index: number): Promise<void> {
  const module = new URL("./file-worker.mjs", import.meta.url);
  const worker = startProcess(module, { args: [path, log, String(TTL_MS)] });
  workers[index] = worker;
  await worker.receive();
}

function pick(): number {
  return Math.floor(random() * PROCESSES);
}

/** Resolves when the log has grown: it must not stop for much longer than a ttl. */
async function untilLogGrows(): Promise<void> {
  const { size } = statSync(log);
  await waitUntil(() => statSync(log).size > size, {
    what: "the log grows",
    timeoutMs: 10 * TTL_MS,
    everyMs: 2,
  });
}

async function endAll(): Promise<void> {
  const exits = workers.map((worker) => worker.exited);
  await Promise.all(workers.map((worker) => worker.send({})));
  for (const { code, signal } of await Promise.all(exits))
    expect([code, signal]).toEqual([0, null]);
}

/** Checks that every number is there once, in order, with rising tokens, and the file clean. */
async function check(): Promise<number> {
  const entries = readFileSync(log, "utf8").trimEnd().split("\n");
  let last = 0n;
  entries.forEach((entry, index) => {
    const [number, token] = entry.trimEnd().split(" ");
    expect(Number(number)).toBe(index + 1);
    expect(BigInt(token ?? 0)).toBeGreaterThan(last);
    last = BigInt(token ?? 0);
  });
  await waitUntil(() => isClean(), { what: "nothing is left", everyMs: 100 });
  const database = openSqlite(path);
  expect(database.all("PRAGMA integrity_check", [])).toEqual([["ok"]]);
  const rows = database.all(LEFT, []);
  database.close();
  expect(rows).toEqual([]);
  return entries.length;
}

/** Opens the file once more, which removes expired entries and sockets of dead processes. */
async function isClean(): Promise<boolean> {
  const locks = new Holdfast(fileStore({ path }));
  await (await locks.mutex("after").acquire()).release();
  for await (const view of locks.list()) if (view.holders.length > 0) break;
  await sleep(20);
  await locks.close();
  const database = openSqlite(path);
  const left = database.all(LEFT, []);
  database.close();
  return left.length === 0 && readdirSync(`${path}-wake`).length === 0;
}

it(`survives ${FAULTS} kills at full speed`, async () => {
  for (let kill = 0; kill < FAULTS; kill += 1) {
    await sleep(random() * 100);
    const index = pick();
    await workers[index]?.[Symbol.asyncDispose]();
    await untilLogGrows();
    await start(index);
  }
  await endAll();
  expect(await check()).toBeGreaterThan(FAULTS);
});

it(`survives ${FAULTS} stops at full speed`, async () => {
  for (let stop = 0; stop < FAULTS; stop += 1) {
    await sleep(random() * 50);
    const worker = workers[pick()];
    await worker?.pause();
    await sleep(random() * 300);
    worker?.resume();
    await untilLogGrows();
  }
  await endAll();
  expect(await check()).toBeGreaterThan(FAULTS);
});
