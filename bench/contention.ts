import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { quantile, type Sample } from "./contest.js";
import { type Counted, type Counters, counted, each } from "./costs.js";
import { forked } from "./forked.js";
import type { Hold, Report, Turns } from "./turns.js";

/** The holds of several processes, one list per worker, and the cost of all for both sides. */
export interface Contention {
  readonly holds: readonly (readonly Hold[])[];
  readonly spent: Counters;
}

/** A process that is ready to contend. */
export interface Contender {
  /** Takes turns, and tells what it did. */
  run(): Promise<Report>;
  kill(): void;
}

/** Runs the same order in several processes at once; rejects when two held the lock at a time. */
export async function contend(
  order: Pick<Turns, "forMs">,
  processes: number,
  start: () => Promise<Contender>,
  servers: Counted | null = null,
): Promise<Contention> {
  const contenders = await Promise.all(Array.from({ length: processes }, start));
  try {
    const limit = AbortSignal.timeout(order.forMs * 3 + 20_000);
    const [all, spent] = await counted(servers, () =>
      Promise.race([
        Promise.all(contenders.map((contender) => contender.run())),
        once(limit, "abort").then(() => Promise.reject(new Error("it did not come to an end"))),
      ]),
    );
    const holds = all.flatMap((report) => report.holds);
    assertExclusive(holds);
    const cpuUs = all.reduce((sum, report) => sum + report.cpuUs, 0);
    return { holds, spent: { "client CPU µs": cpuUs, ...spent } };
  } finally {
    for (const contender of contenders) contender.kill();
  }
}

/** Starts a program of ours that calls `takeTurns` with this order. */
export function startForked(program: URL, order: Turns): () => Promise<Contender> {
  return async () => {
    const child = forked(program, order);
    await once(child, "message");
    return {
      run: async () => {
        const report = Promise.race([once(child, "message"), died(child)]);
        child.send("go");
        return (await report)[0] as Report;
      },
      kill: () => child.kill("SIGKILL"),
    };
  };
}

/** Comes after the last message, which the exit may overtake. */
async function died(child: ChildProcess): Promise<never> {
  await once(child, "disconnect");
  throw new Error("a contender ended early");
}

/** A lock that lets two in at once has no figures. */
function assertExclusive(holds: Contention["holds"]): void {
  const sorted = inOrder(holds);
  sorted.forEach(([, [, heldMs]], index) => {
    const before = sorted[index - 1];
    if (before && heldMs < before[1][2]) throw new Error("two held the lock at the same time");
  });
}

/** All holds in the order in which they began, each with the number of its worker. */
function inOrder(holds: Contention["holds"]): (readonly [worker: number, hold: Hold])[] {
  const all = holds.flatMap((own, worker) => own.map((hold) => [worker, hold] as const));
  return all.sort((a, b) => a[1][1] - b[1][1]);
}

/** The figures of many workers that wanted the same lock. */
export function contested({ holds, spent }: Contention): Sample {
  const all = holds.flat();
  let [firstMs, lastMs, longestMs] = [Number.POSITIVE_INFINITY, 0, 0];
  for (const [askedMs, heldMs] of all) {
    firstMs = Math.min(firstMs, heldMs);
    lastMs = Math.max(lastMs, heldMs);
    longestMs = Math.max(longestMs, heldMs - askedMs);
  }
  return {
    value: (all.length * 1000) / (lastMs - firstMs),
    more: {
      "longest wait ms": longestMs,
      "Jain index": jain(holds.map((own) => own.length)),
      ...each(spent, all.length, "grant"),
    },
  };
}

/** The time from one worker to another; a worker that takes the lock again does not count. */
export function handedOver({ holds, spent }: Contention): Sample {
  const gaps: number[] = [];
  let last: readonly [worker: number, hold: Hold] | undefined;
  for (const next of inOrder(holds)) {
    if (last && last[0] !== next[0]) gaps.push(next[1][1] - last[1][2]);
    last = next;
  }
  return lags(gaps, each(spent, gaps.length, "handoff"));
}

/** How long single messages or handoffs took. */
export function lags(tookMs: readonly number[], costs: Counters = {}): Sample {
  if (tookMs.length === 0) throw new Error("nothing was ever handed over");
  return {
    value: quantile(tookMs, 0.5),
    more: { "p99 ms": quantile(tookMs, 0.99), handoffs: tookMs.length, ...costs },
  };
}

/** 1 when all workers had the same share, 1/n when one had everything. */
function jain(counts: readonly number[]): number {
  const sum = counts.reduce((total, count) => total + count, 0);
  const squares = counts.reduce((total, count) => total + count * count, 0);
  return (sum * sum) / (counts.length * squares);
}
