import type { Random } from "./random.js";

/**
 * The pauses between repeated tries: each about twice as long as the one before, up to `longestMs`.
 * A pause is shortened by up to a half at random, so that clients which failed together do not ask
 * together again.
 */
export class Backoff {
  readonly #random: Random;
  readonly #firstMs: number;
  readonly #longestMs: number;
  #failures = 0;

  constructor(random: Random, pauses: { readonly firstMs: number; readonly longestMs: number }) {
    this.#random = random;
    this.#firstMs = pauses.firstMs;
    this.#longestMs = pauses.longestMs;
  }

  /** The pause after one more failure. */
  nextMs(): number {
    const pauseMs = Math.min(this.#firstMs * 2 ** this.#failures, this.#longestMs);
    this.#failures += 1;
    return jittered(pauseMs, this.#random);
  }

  /** A try succeeded: the next pause is the first one again. */
  reset(): void {
    this.#failures = 0;
  }
}

/** Between a half and all of `pauseMs`. */
export function jittered(pauseMs: number, random: Random): number {
  return pauseMs * (0.5 + random.fraction() / 2);
}
