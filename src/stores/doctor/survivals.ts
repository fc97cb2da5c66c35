import type { Survival } from "../../contract/examination.js";

/** Events that every store survives, whatever its deployment is. */
export const CLIENT_SURVIVALS: readonly Survival[] = [
  {
    event: "A holder crashes",
    outcome: "Its locks are free after their ttl.",
    isSafe: true,
  },
  {
    event: "A holder is paused for longer than its ttl",
    outcome: "It is past its deadline when it goes on, and knows.",
    isSafe: true,
  },
];

/** A time for people: `10 s`, `667 ms`. */
export function seconds(timeMs: number): string {
  if (timeMs < 1_000) return `${Math.ceil(timeMs)} ms`;
  return `${Number((timeMs / 1000).toFixed(1))} s`;
}
