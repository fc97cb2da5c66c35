import type { Family } from "../plan.js";

export interface Edit {
  /** Below the compiled `src`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutant extends Edit {
  readonly title: string;
  /** Which seeds find it. Default: those of one store that decides alone. */
  readonly family?: Family;
  /** What has to go with it, where one thing is guarded twice. */
  readonly also?: Edit;
}
