import type { Family } from "../plan.js";

/**
 * An expression with several terms: `a && b`, `a || b`, a sum (`a + b - c`), a product, a quotient,
 * `Math.max`, `Math.min`, the two branches of a ternary, or the arguments of another call.
 */
export type Terms = "&&" | "||" | "+" | "*" | "/" | "max" | "min" | "?:" | "call";

/**
 * How a mutant changes the marked statement. `always` and `never` replace its condition; `swap`
 * exchanges the two sides of its comparison; `value` replaces what it returns, assigns or declares.
 * Terms count from 1. In `becomes`, `$` stands for the code that is replaced.
 */
export type Change =
  | "drop"
  | "always"
  | "never"
  | "swap"
  | { readonly value: string }
  | { readonly only: number; readonly of: Terms }
  | { readonly term: number; readonly of: Terms; readonly becomes: string }
  | Rewording;

/**
 * Other text for a part of the statement, or for the whole where `text` is not given. It names what
 * the code names, so a rename breaks it: for what no other change can say, with the reason.
 */
export interface Rewording {
  readonly text?: string | RegExp;
  readonly becomes: string;
  readonly why: string;
}

export interface Edit {
  /** The mark of the statement: `// rule: <id>` on the line before it, in `src`. */
  readonly rule: string;
  readonly change: Change;
}

export interface Mutant extends Edit {
  readonly title: string;
  /** Which seeds find it. Default: those of one store that decides alone. */
  readonly family?: Family;
  /** Further edits, where two statements keep one rule. */
  readonly also?: readonly Edit[];
}

/** The present time of the process that runs: see `SimulatedProcess.turn`. */
export const NOW = "simulatedClock.nowMs()";
