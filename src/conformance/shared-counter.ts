import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lock } from "../locks/lock.js";

/** One value of the counter, and the token under which it was written. */
export interface Count {
  readonly token: bigint;
  readonly value: number;
}

/**
 * Adds one to a number in a file by reading it, sleeping and writing it. Two holders at the same
 * time would lose a count.
 */
export async function countUp(lock: Lock, file: string): Promise<Count> {
  return lock.run(async ({ token }) => {
    const value = Number(await readFile(file, "utf8")) + 1;
    await sleep(1);
    await writeFile(file, String(value));
    return { token, value };
  });
}

/** A counter file for several processes; deleted after `use`. */
export async function withCounter<T>(use: (file: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-counter-"));
  try {
    const file = join(folder, "count");
    await writeFile(file, "0");
    return await use(file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Checks that no count is missing and that tokens rise with the counts. */
export function assertComplete(counts: readonly Count[], total: number): void {
  const inOrder = [...counts].sort((a, b) => a.value - b.value);
  assert.deepEqual(
    inOrder.map(({ value }) => value),
    Array.from({ length: total }, (_, index) => index + 1),
  );
  for (const [index, { token }] of inOrder.entries()) {
    const before = inOrder[index - 1]?.token ?? 0n;
    assert.ok(token > before, `token ${token} does not exceed ${before}`);
  }
}
