import type { FindingsAnswer } from "./message.js";
import type { ShownLocks } from "./shown-locks.js";

/** An examination is shown again for so long: many viewers cost the store as much as one. */
const FRESH_MS = 10_000;

/** The findings of the doctor, asked for once for all viewers. */
export class Examinations {
  readonly #locks: ShownLocks;
  readonly #wallMs: () => number;
  #last: Promise<FindingsAnswer> | null = null;
  #at = 0;

  constructor(locks: ShownLocks, wallMs: () => number) {
    this.#locks = locks;
    this.#wallMs = wallMs;
  }

  get(): Promise<FindingsAnswer> {
    const at = this.#wallMs();
    if (this.#last && Math.abs(at - this.#at) < FRESH_MS) return this.#last;
    const asked = this.#locks.examine().then((examination) => ({ at, examination }));
    this.#last = asked;
    this.#at = at;
    // A failure is not kept.
    asked.catch(() => {
      if (this.#last === asked) this.#last = null;
    });
    return asked;
  }
}
