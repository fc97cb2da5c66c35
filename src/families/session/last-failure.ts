import { StoreError } from "../../errors/index.js";
import type { Sequencer } from "./sequencer.js";

/** A store that is still in trouble fails again within this time. */
const RECENT_MS = 2_000;

/** The last failure of a call to the store, for calls that end before they fail themselves. */
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

  /** The store answered. */
  clear(): void {
    this.#last = null;
  }

  /** The same error with the failure that is known; if it has no cause, with the next one. */
  async explain(error: StoreError): Promise<StoreError> {
    const known = (await this.#sequencer.whyUnreachable?.()) ?? this.#recent;
    const cause = known ?? (error.cause === undefined ? await this.#next() : null);
    if (!cause || says(error, cause) || says(error, cause.cause)) return error;
    const { outcome, retryable, lockName, store } = error;
    const context = { outcome, retryable, lockName, store, cause };
    return new StoreError(`${error.message} ${cause.message}`, context);
  }

  /** Null if none comes before nobody waits for it any more. */
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
