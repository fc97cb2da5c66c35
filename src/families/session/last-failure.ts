import { StoreError } from "../../errors/index.js";
import type { Sequencer } from "./sequencer.js";

/** How long a failure counts as recent, and how long `explain` waits for another one. */
const RECENT_MS = 2_000;

/** Keeps the last failed store call, to explain calls that end before they fail themselves. */
export class LastFailure {
  readonly #sequencer: Sequencer;
  #last: { readonly error: Error; readonly atMs: number } | null = null;
  readonly #listeners = new Set<(error: Error | null) => void>();

  constructor(sequencer: Sequencer) {
    this.#sequencer = sequencer;
  }

  note(error: unknown): void {
    if (!(error instanceof Error)) return;
    this.#last = { error, atMs: this.#nowMs };
    for (const tell of [...this.#listeners]) tell(error);
  }

  /** Forgets the failure, because the store answered. */
  clear(): void {
    this.#last = null;
  }

  /** Adds the known failure to the error. An error without a cause waits for the next failure. */
  async explain(error: StoreError): Promise<StoreError> {
    const known = (await this.#sequencer.whyUnreachable?.()) ?? this.#recent;
    const cause = known ?? (error.cause === undefined ? await this.#next() : null);
    if (!cause || says(error, cause) || says(error, cause.cause)) return error;
    const { outcome, retryable, lockName, store } = error;
    const context = { outcome, retryable, lockName, store, cause };
    return new StoreError(`${error.message} ${cause.message}`, context);
  }

  /** Resolves with the next failure; null if there is none within `RECENT_MS`. */
  #next(): Promise<Error | null> {
    return new Promise((resolve) => {
      const tell = (error: Error | null): void => {
        this.#listeners.delete(tell);
        limit.cancel();
        resolve(error);
      };
      const limit = this.#sequencer.runtime.timers.after(RECENT_MS, () => tell(null));
      this.#listeners.add(tell);
    });
  }

  get #recent(): Error | null {
    if (!this.#last || this.#nowMs - this.#last.atMs >= RECENT_MS) return null;
    return this.#last.error;
  }

  get #nowMs(): number {
    return this.#sequencer.runtime.clock.nowMs();
  }
}

function says(error: StoreError, cause: unknown): boolean {
  return cause instanceof Error && error.message.includes(cause.message);
}
