import { readFileSync } from "node:fs";

/** The clock ticks of all processors so far; null where the system does not tell. */
export interface Ticks {
  readonly all: number;
  readonly stolen: number;
}

export function readTicks(): Ticks | null {
  try {
    const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
    const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
    return { all: ticks.reduce((sum, count) => sum + count, 0), stolen: ticks[7] ?? 0 };
  } catch {
    return null;
  }
}

/** The part of the time since `before` that the host gave to other machines; null if not told. */
export function stolenSince(before: Ticks | null): number | null {
  const now = readTicks();
  if (!before || !now || now.all === before.all) return null;
  return (now.stolen - before.stolen) / (now.all - before.all);
}

/** The same as a text that follows another one. */
export function stolenText(part: number | null | undefined): string {
  if (part === null || part === undefined) return "";
  return `, ${(part * 100).toFixed(1)} % of the processor time stolen by the host`;
}
