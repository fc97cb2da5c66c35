export interface Edit {
  /** Below the compiled `src`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutant extends Edit {
  readonly title: string;
  /** What has to go with it, where one thing is guarded twice. */
  readonly also?: Edit;
}
