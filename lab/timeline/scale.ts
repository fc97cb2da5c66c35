export interface Scale {
  readonly left: number;
  /** No text lies beyond it. */
  readonly edge: number;
  x(atMs: number): number;
}

/** A text that must end within the page although its place depends on the scale. */
export interface Reaching {
  readonly atMs: number;
  readonly width: number;
}

/**
 * Time from `left` on, as long as possible, so that neither the end nor a text lies beyond `edge`.
 */
export function scaleFor(
  endMs: number,
  left: number,
  edge: number,
  texts: readonly Reaching[],
): Scale {
  const perMs = Math.min(
    (edge - left) / endMs,
    ...texts
      .filter(({ atMs }) => atMs > 0)
      .map(({ atMs, width }) => Math.max(0, edge - width - left) / atMs),
  );
  return { left, edge, x: (atMs) => left + perMs * atMs };
}

const MAX_TICKS = 9;

/** Round times from 0 to the end, in milliseconds. */
export function ticksOf(endMs: number): number[] {
  const power = 10 ** Math.floor(Math.log10(endMs / MAX_TICKS));
  const step = [1, 2, 5].map((part) => part * power).find((one) => endMs / one <= MAX_TICKS);
  const stepMs = step ?? 10 * power;
  return Array.from({ length: Math.floor(endMs / stepMs) + 1 }, (_, index) => index * stepMs);
}

/** A duration with two digits: `3.1 s`, `188 ms`, `0.4 ms`. */
export function duration(ms: number): string {
  if (ms >= 9950) return `${Math.round(ms / 1000)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return ms >= 10 ? `${Math.round(ms)} ms` : `${Number(ms.toFixed(1))} ms`;
}
