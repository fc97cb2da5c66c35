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
