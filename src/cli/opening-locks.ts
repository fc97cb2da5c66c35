import type { Holdfast } from "../api/holdfast.js";
import type { ShownLocks } from "../dashboard/index.js";
import { isFinal, StoreError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";

/**
 * The locks of a store that may be away when they are first asked for. Each question opens the
 * store, until that succeeds once; questions at the same time share one attempt.
 */
export class OpeningLocks implements ShownLocks, AsyncDisposable {
  readonly #open: () => Promise<Holdfast>;
  #opened: Holdfast | null = null;
  #attempt: Promise<Holdfast> | null = null;
  #isClosed = false;

  constructor(open: () => Promise<Holdfast>) {
    this.#open = open;
  }

  /**
   * The first attempt, for at most `limitMs`: whether the store is open. Throws where no further
   * attempt would help.
   */
  async tried(limitMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, limitMs);
    });
    try {
      await Promise.race([this.#locks(), late]);
    } catch (error) {
      if (!(error instanceof StoreError) || isFinal(error)) throw error;
    } finally {
      clearTimeout(timer);
    }
    return this.#opened !== null;
  }

  async *list(...given: Parameters<Holdfast["list"]>): ReturnType<Holdfast["list"]> {
    yield* (await this.#locks()).list(...given);
  }

  async inspect(...given: Parameters<Holdfast["inspect"]>): ReturnType<Holdfast["inspect"]> {
    return (await this.#locks()).inspect(...given);
  }

  async revoke(...given: Parameters<Holdfast["revoke"]>): ReturnType<Holdfast["revoke"]> {
    return (await this.#locks()).revoke(...given);
  }

  async examine(...given: Parameters<Holdfast["examine"]>): ReturnType<Holdfast["examine"]> {
    return (await this.#locks()).examine(...given);
  }

  held(): Lease[] {
    return this.#opened?.held() ?? [];
  }

  /** A store that opens later is closed then. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#opened?.close();
  }

  async #locks(): Promise<Holdfast> {
    if (this.#opened) return this.#opened;
    this.#attempt ??= this.#try();
    return this.#attempt;
  }

  async #try(): Promise<Holdfast> {
    try {
      const locks = await this.#open();
      this.#opened = locks;
      if (this.#isClosed) await locks.close();
      return locks;
    } finally {
      this.#attempt = null;
    }
  }
}
