/**
 * Ballots: the numbers that a round of votes is for. The ballot of a grant is its first token, so
 * ballots follow the wall clock and never repeat.
 */
import type { Runtime } from "../../time/runtime.js";

/**
 * The number of tokens that belong to a ballot; the ballot itself is the first of them. Every
 * proposed ballot is a multiple of this number, so a higher ballot is above all tokens of a lower
 * one.
 */
export const BALLOT_SPAN = 64;

/** Follows the clock, so that one round is enough, and is above every ballot seen of the name. */
export function nextBallot(wallUs: number, highestSeen: number): number {
  // rule: ballots-span-their-tokens
  return Math.ceil(Math.max(wallUs, highestSeen + 1) / BALLOT_SPAN) * BALLOT_SPAN;
}

/** The number of tokens that a grant gets. */
export function spanOf(claim: { readonly span: number }): number {
  return Math.min(claim.span, BALLOT_SPAN);
}

/** The wall clock in microseconds: two clients that ask in the same millisecond seldom collide. */
export function ballotClock({ clock }: Runtime): number {
  return clock.wallUs() + Math.floor((clock.nowMs() % 1) * 1000);
}

const MAX_NAMES = 10_000;

/**
 * For each name the highest ballot that this client has seen, while it is ahead of the wall clock:
 * the next ballot must be above it. A ballot that the clock has passed is of no use any more.
 */
export class SeenBallots {
  readonly #ballots = new Map<string, number>();

  of(key: string): number {
    return this.#ballots.get(key) ?? 0;
  }

  note(key: string, ballot: number, wallUs: number): void {
    const highest = Math.max(ballot, this.of(key));
    if (highest < wallUs) {
      this.#ballots.delete(key);
      return;
    }
    this.#ballots.set(key, highest);
    if (this.#ballots.size <= MAX_NAMES) return;
    for (const [name, seen] of this.#ballots) if (seen < wallUs) this.#ballots.delete(name);
    // A forgotten ballot costs a second round of votes, no more.
    if (this.#ballots.size > MAX_NAMES) this.#ballots.clear();
  }
}
