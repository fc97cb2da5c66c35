import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lock } from "../locks/lock.js";

/** One count, and the token it was made under. */
export interface Count {
  readonly token: bigint;
  readonly value: number;
}

/**
 * A number in a file that is raised by reading it, sleeping and writing it: any two who do so at
 * the same time lose a count.
 */
export async function countUp(lock: Lock, file: string): Promise<Count> {
  return lock.run(async ({ token }) => {
    const value = Number(await readFile(file, "utf8")) + 1;
    await sleep(1);
    await writeFile(file, String(value));
    return { token, value };
  });
}

/** A counter for several processes, gone after `use`. */
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

/** Nobody's count was overwritten, and whoever came later had the higher token. */
export function assertComplete(counts: readonly Count[], total: number): void {
  const inOrder = [...counts].sort((a, b) => a.value - b.value);
  assert.deepEqual(
    inOrder.map(({ value }) => value),
    Array.from({ length: total }, (_, index) => index + 1),
  );
  for (const [index, { token }] of inOrder.entries()) {
    const before = inOrder[index - 1]?.token ?? 0n;
    assert.ok(token > before, `token ${token} comes after ${before}`);
  }
}
