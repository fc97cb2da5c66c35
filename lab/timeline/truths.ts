/** The truth of the store, as the picture shows it. */

import type { Entry, EntryOf } from "../history.js";

export interface Truth extends Stretch {
  readonly holder: string;
  /** Of that process: where its title does not fit. */
  readonly id: string;
  readonly token?: string;
  readonly isGhost: boolean;
  /** The times in which that holder does not believe, or is dead. */
  readonly doubts: readonly Span[];
}

/**
 * The changes of the truth. After a late copy the value of its process is a ghost, even if the
 * store was not read between the release and the copy.
 */
function haunted(entries: readonly Entry[]): EntryOf<"truth">[] {
  const ghosts = new Set<string>();
  let truth: EntryOf<"truth"> | undefined;
  return entries.flatMap((entry) => {
    if (entry.type === "believes") ghosts.delete(entry.lane);
    if (entry.type === "truth") {
      const isGhost = entry.holder !== null && ghosts.has(entry.holder);
      truth = isGhost ? { ...entry, holder: "ghost" } : entry;
      return [truth];
    }
    if (entry.type !== "fault" || entry.what !== "late copy") return [];
    ghosts.add(entry.lane);
    if (truth?.holder !== entry.lane) return [];
    truth = { atMs: entry.atMs, type: "truth", holder: "ghost" };
    return [truth];
  });
}

/** A process of the picture, as far as it matters here. */
interface Holder {
  readonly id: string;
  readonly title: string;
  readonly beliefs: readonly Span[];
}

/** The truth is read again and again, and comes a little late: a shorter doubt is that delay. */
const MIN_DOUBT = 0.02;

export function truthsOf(
  entries: readonly Entry[],
  lanes: readonly Holder[],
  endMs: number,
): Truth[] {
  const changes = haunted(entries);
  return changes.flatMap(({ atMs, holder, token }, index) => {
    if (holder === null) return [];
    const next = changes[index + 1];
    const lane = lanes.find(({ id }) => id === holder);
    const span = { fromMs: atMs, toMs: next?.atMs ?? endMs };
    const doubts = without([span], lane?.beliefs ?? []).filter(({ fromMs, toMs }) => {
      return toMs - fromMs > endMs * MIN_DOUBT;
    });
    const isGhost = holder === "ghost";
    if (isGhost && doubts.length === 0) return [];
    return {
      ...span,
      isOpen: next === undefined,
      holder: lane?.title ?? holder,
      id: holder,
      ...(token === undefined ? {} : { token }),
      isGhost,
      doubts,
    };
  });
}

/** Stretches of time, and how they meet. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A span that the end of the trial cut off has `isOpen`. */
export interface Stretch extends Span {
  readonly isOpen: boolean;
}

/** The spans without the time of the others. Both are in the order of time, and do not overlap. */
export function without<T extends Span>(spans: readonly T[], others: readonly Span[]): T[] {
  return others.reduce(
    (left, { fromMs, toMs }) =>
      left.flatMap((span) =>
        [
          { ...span, toMs: Math.min(span.toMs, fromMs) },
          { ...span, fromMs: Math.max(span.fromMs, toMs) },
        ].filter((part) => part.fromMs < part.toMs),
      ),
    [...spans],
  );
}

/** The time that at least two of the lists cover. */
export function overlaps(lists: readonly (readonly Span[])[]): Span[] {
  const edges = lists
    .flat()
    .flatMap(({ fromMs, toMs }) => [
      { atMs: fromMs, by: 1 },
      { atMs: toMs, by: -1 },
    ])
    // An end before a start of the same instant: to touch is not to overlap.
    .sort((a, b) => a.atMs - b.atMs || a.by - b.by);
  const found: Span[] = [];
  let count = 0;
  let fromMs = 0;
  for (const { atMs, by } of edges) {
    if (count < 2 && count + by === 2) fromMs = atMs;
    if (count === 2 && by < 0 && fromMs < atMs) found.push({ fromMs, toMs: atMs });
    count += by;
  }
  return found;
}

/** The part of a span that lies in another one; undefined where they do not meet. */
export function common(one: Span, other: Span): Span | undefined {
  const fromMs = Math.max(one.fromMs, other.fromMs);
  const toMs = Math.min(one.toMs, other.toMs);
  return fromMs < toMs ? { fromMs, toMs } : undefined;
}
