import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Hold, Order, Report } from "./contender.js";

const CONTENDER = fileURLToPath(new URL("./contender.js", import.meta.url));

/** Runs the same order in several processes at once; their holds, one list per worker. */
export async function contend(order: Order, processes: number): Promise<readonly Hold[][]> {
  const children = Array.from({ length: processes }, () =>
    fork(CONTENDER, [JSON.stringify(order)], { stdio: ["ignore", "ignore", "inherit", "ipc"] }),
  );
  try {
    await Promise.all(children.map((child) => once(child, "message")));
    const reports = children.map((child) => once(child, "message"));
    for (const child of children) child.send("go");
    const limit = AbortSignal.timeout(order.forMs * 3 + 20_000);
    const done = await Promise.race([
      Promise.all(reports),
      once(limit, "abort").then(() => Promise.reject(new Error("it did not come to an end"))),
    ]);
    const holds = done.flatMap(([report]) => (report as Report).holds.map((own) => [...own]));
    assertExclusive(holds);
    return holds;
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
}

/** A lock that lets two in at once has no figures. */
function assertExclusive(holds: readonly Hold[][]): void {
  const sorted = inOrder(holds);
  sorted.forEach(([, heldMs], index) => {
    const before = sorted[index - 1];
    if (before && heldMs < before[2]) throw new Error("two held the lock at the same time");
  });
}

export function inOrder(holds: readonly Hold[][]): Hold[] {
  return holds.flat().sort((a, b) => a[1] - b[1]);
}

/** 1 when all workers had the same share, 1/n when one had everything. */
export function jain(counts: readonly number[]): number {
  const sum = counts.reduce((total, count) => total + count, 0);
  const squares = counts.reduce((total, count) => total + count * count, 0);
  return (sum * sum) / (counts.length * squares);
}
