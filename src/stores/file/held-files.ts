import type { Stats } from "node:fs";

/**
 * The files that this process has open as databases, whichever copy of this package opened them.
 * None of them may be opened and closed by other means: that drops the locks of the process.
 */
const SHARED = Symbol.for("holdfast.held-files");

export type FileId = Pick<Stats, "dev" | "ino">;

function counts(): Map<string, number> {
  const shared = globalThis as { [SHARED]?: Map<string, number> };
  shared[SHARED] ??= new Map();
  return shared[SHARED];
}

export function isHeldFile(file: FileId): boolean {
  return counts().has(keyOf(file));
}

export function holdFile(file: FileId): void {
  const key = keyOf(file);
  counts().set(key, (counts().get(key) ?? 0) + 1);
}

export function dropFile(file: FileId): void {
  const key = keyOf(file);
  const left = (counts().get(key) ?? 1) - 1;
  if (left > 0) counts().set(key, left);
  else counts().delete(key);
}

function keyOf({ dev, ino }: FileId): string {
  return `${dev}:${ino}`;
}

export function isSameFile(a: FileId, b: FileId): boolean {
  return a.ino === b.ino && a.dev === b.dev;
}
