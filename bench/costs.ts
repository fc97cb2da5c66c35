/** The cost of an operation beside its time: the processor of this process, and of servers. */

import { readFileSync } from "node:fs";

/** Counters that only rise, by what they count. */
export type Counters = Readonly<Record<string, number>>;

/** Servers that tell how much work they have done so far. */
export interface Counted {
  counters(): Promise<Counters>;
}

/** By how much the counters of the servers rise during the work. */
export async function counted<T>(
  servers: Counted | null,
  work: () => Promise<T>,
): Promise<readonly [result: T, spent: Counters]> {
  const before = (await servers?.counters()) ?? {};
  const result = await work();
  const after = (await servers?.counters()) ?? {};
  const risen = ([name, count]: [string, number]) => [name, count - (before[name] ?? 0)];
  return [result, Object.fromEntries(Object.entries(after).map(risen))];
}

/** The same for one of so many operations, under names such as `bytes/pair`. */
export function each(
  spent: Counters,
  operations: number,
  operation: string,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(spent).map(([name, count]) => [`${name}/${operation}`, count / operations]),
  );
}

/**
 * The time of some operations of this process, and the cost of each on both sides. Their number may
 * be a count that is known only when they are done.
 */
export async function measured(
  servers: Counted | null,
  operations: number | (() => number),
  run: () => Promise<void>,
  operation = "pair",
): Promise<{ elapsedMs: number; more: Record<string, number> }> {
  const [{ elapsedMs, cpuUs }, spent] = await counted(servers, () => timed(run));
  const count = typeof operations === "number" ? operations : operations();
  return { elapsedMs, more: each({ "client CPU µs": cpuUs, ...spent }, count, operation) };
}

async function timed(run: () => Promise<void>): Promise<{ elapsedMs: number; cpuUs: number }> {
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  await run();
  const elapsedMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { elapsedMs, cpuUs: user + system };
}

/** The counters of several servers in sum. */
export function sumOf(all: readonly Counters[]): Counters {
  const sum: Record<string, number> = {};
  for (const [name, count] of all.flatMap((counters) => Object.entries(counters))) {
    sum[name] = (sum[name] ?? 0) + count;
  }
  return sum;
}

/** A tick of the clock by which Linux counts the time of processes. */
const TICK_US = 10_000;

/** The processor time of another process so far; NaN where the system does not tell. */
export function cpuUsOf(pid: number | undefined): number {
  return ticksOf(`${pid}`, 11) * TICK_US;
}

/** The same of all processes that a process, or this one, started and that have ended. */
export function cpuUsOfChildren(pid?: number): number {
  return ticksOf(`${pid ?? "self"}`, 13) * TICK_US;
}

/** The sum of two fields in sequence, user and system, counted behind the name of the program. */
function ticksOf(process: string, field: number): number {
  try {
    const text = readFileSync(`/proc/${process}/stat`, "utf8");
    // The name stands in brackets, and may have spaces.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return Number(fields[field]) + Number(fields[field + 1]);
  } catch {
    return Number.NaN;
  }
}

/** The live bytes on the heap of this process; needs `--expose-gc`. */
export function heapBytes(): number {
  // Twice: what a finalizer of the first let go is collected by the second.
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
