/**
 * A rolling deploy: processes with the real package and processes with the changed import contend
 * for the same keys, and are killed at any moment. No two of them may believe at the same time.
 */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { type ControlledProcess, startProcess } from "../faults/process.js";
import { isFull } from "../fixtures/depth.js";
import { randomOf } from "../fixtures/seed.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { closeAll, startAll } from "../servers/server-process.js";
import { waitUntil } from "../servers/wait-until.js";

const SECONDS = isFull ? 60 : 8;
const SIDES = ["old", "new", "old", "new"] as const;
const TTL_MS = 1_000;
/** After a kill the lock stays until its time is over. */
const KILL_EVERY_MS = 2_200;
const MIN_KILLS = 3;
const PATIENCE_MS = 60_000;
const LIMIT_MS = SECONDS * 1_000 + 4 * PATIENCE_MS;

const random = randomOf("rolling-deploy");

type Side = (typeof SIDES)[number];

interface Belief {
  readonly side: Side;
  readonly firstUs: number;
  readonly lastUs: number;
}

let folder = "";
let files: { readonly path: string; readonly side: Side }[] = [];
let processes: ControlledProcess[] = [];
let servers: RedisServer[] = [];

afterEach(async () => {
  for (const one of processes) await one[Symbol.asyncDispose]();
  await closeAll(servers);
  rmSync(folder, { recursive: true, force: true });
  [files, processes, servers] = [[], [], []];
});

async function contend(library: string, side: Side, limit: number): Promise<ControlledProcess> {
  const path = join(folder, `${files.length}`);
  files.push({ path, side });
  const ports = servers.map(({ port }) => port).join();
  const args = [library, side, ports, path, `${TTL_MS}`, `${limit}`];
  const started = startProcess(new URL("./contender.mjs", import.meta.url), { args });
  processes.push(started);
  await started.receive((message) => message === "ready");
  return started;
}

/** For each grant, when its process believed for the first and for the last time. */
function beliefs(): Belief[] {
  return files.flatMap(({ path, side }) => {
    const grants = new Map<string, Belief>();
    // A line that a kill cut off is ignored.
    for (const [, grant = "", us] of readFileSync(path, "utf8").matchAll(/^(\d+) (\d+)\n/gm)) {
      const firstUs = grants.get(grant)?.firstUs ?? Number(us);
      grants.set(grant, { side, firstUs, lastUs: Number(us) });
    }
    return [...grants.values()];
  });
}

/** How many grants began while `limit` others were believed in. */
function overlaps(all: readonly Belief[], limit: number): number {
  const ordered = all.toSorted((a, b) => a.firstUs - b.firstUs);
  let current: Belief[] = [];
  let found = 0;
  for (const belief of ordered) {
    current = current.filter(({ lastUs }) => lastUs >= belief.firstUs);
    if (current.length >= limit) found += 1;
    current.push(belief);
  }
  return found;
}

const countOf = (side: Side): number => beliefs().filter((belief) => belief.side === side).length;

const cases = [
  { library: "redlock", nodes: 3, limit: 1, isAlways: true },
  { library: "redlock4", nodes: 1, limit: 1, isAlways: false },
  { library: "mutex", nodes: 1, limit: 1, isAlways: false },
  { library: "semaphore", nodes: 1, limit: 2, isAlways: false },
].filter(({ isAlways }) => isAlways || isFull);

async function deploy({ library, nodes, limit }: (typeof cases)[number]): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), "holdfast-rolling-"));
  servers = await startAll(Array.from({ length: nodes }, () => startRedis()));
  const running = await Promise.all(SIDES.map((side) => contend(library, side, limit)));
  const untilMs = performance.now() + SECONDS * 1_000;
  let kills = 0;
  while (performance.now() < untilMs || kills < MIN_KILLS) {
    await sleep(KILL_EVERY_MS * (0.5 + random()));
    const at = kills % SIDES.length;
    await running[at]?.kill();
    kills += 1;
    running[at] = await contend(library, SIDES[at] ?? "old", limit);
  }
  for (const side of ["old", "new"] as const) {
    const before = countOf(side);
    await waitUntil(() => countOf(side) > before, {
      what: `a grant of the ${side} side after the last kill`,
      timeoutMs: PATIENCE_MS,
      everyMs: 100,
    });
  }
  const exits = running.map(({ exited }) => exited);
  await Promise.all(running.map((contender) => contender.send({ end: true })));
  await Promise.all(exits);
  const all = beliefs();
  const [old, changed] = [countOf("old"), countOf("new")];
  console.log(
    `${library}: ${old} grants of the package, ${changed} with the changed import, ` +
      `${kills} kills, ${overlaps(all, limit)} overlaps`,
  );
  expect(Math.min(old, changed)).toBeGreaterThan(kills);
  expect(overlaps(all, limit)).toBe(0);
}

it.each(cases)(
  "$library: old and new processes exclude each other through kills",
  { timeout: LIMIT_MS },
  deploy,
);

it("counts grants that overlap", () => {
  const belief = (firstUs: number, lastUs: number): Belief => ({ side: "old", firstUs, lastUs });
  const two = [belief(0, 10), belief(5, 12), belief(11, 20)];
  expect(overlaps(two, 1)).toBe(2);
  expect(overlaps(two, 2)).toBe(0);
});
