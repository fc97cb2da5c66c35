import { StoreError } from "../../errors.js";
import type { Touch, Touched } from "../../rules/ledger-command.js";
import type { Port } from "../../time/port.js";
import type { Timer } from "../../time/timers.js";
import type { Acquisition } from "./acquisition.js";
import type { Answer } from "./channel.js";
import { holderView } from "./views.js";

/** Waiters further back ask a little later, so that the head usually finds the lock free first. */
const STAGGER_MS = 2;
const LONGEST_STAGGER_MS = 200;
/** A touch that failed is repeated soon: three silent periods cost this client its places. */
const RETRY_PART = 4;

/** What the store around it does for a vigil. */
export interface VigilDuties {
  readonly port: Port;
  touch(key: string): Answer<Touch> | Promise<Answer<Touch>>;
  onTouched(key: string, answer: Answer<Touch>): void;
}

/**
 * The watch of this client at one name while any of its acquisitions waits there. It tells the
 * store that the client lives, finds grants whose push was lost, and asks again when the holder in
 * front is due: so no wait depends on a message alone.
 */
export class Vigil {
  readonly #key: string;
  readonly #duties: VigilDuties;
  readonly #waiting = new Set<Acquisition>();
  #periodMs = Number.POSITIVE_INFINITY;
  #staggerMs = 0;
  #timer: Timer | undefined;
  #timerMs = Number.POSITIVE_INFINITY;
  /** Counts changes, so that an answer about an older set is not held against this one. */
  #changes = 0;

  constructor(key: string, duties: VigilDuties) {
    this.#key = key;
    this.#duties = duties;
  }

  get isIdle(): boolean {
    return this.#waiting.size === 0;
  }

  add(acquisition: Acquisition, ahead: number | null, dueMs: number): void {
    if (!this.#waiting.has(acquisition)) this.#changes += 1;
    this.#waiting.add(acquisition);
    this.#periodMs = Math.min(this.#periodMs, acquisition.touchMs);
    if (this.#waiting.size === 1) {
      this.#staggerMs = Math.min((ahead ?? 0) * STAGGER_MS, LONGEST_STAGGER_MS);
    }
    this.#wakeIn(dueMs);
  }

  remove(acquisition: Acquisition): void {
    if (!this.#waiting.delete(acquisition)) return;
    this.#changes += 1;
    if (this.isIdle) this.end();
  }

  end(): void {
    this.#timer?.cancel();
    this.#timerMs = Number.POSITIVE_INFINITY;
  }

  async touch(): Promise<void> {
    this.end();
    const changes = this.#changes;
    // A call that is lost ends by a time-out longer than the store's patience: do not wait for it.
    // rule: unanswered-touch-is-repeated
    this.#wakeIn(this.#periodMs);
    try {
      this.#onAnswer(await this.#duties.touch(this.#key), changes);
    } catch (error) {
      // Unknown is nothing to act on; the acquisitions themselves notice when it lasts too long.
      if (error instanceof StoreError && !error.retryable) {
        for (const acquisition of [...this.#waiting]) acquisition.onRefusal(error);
      }
      // rule: failed-touch-is-repeated
      this.#wakeIn(this.#periodMs / RETRY_PART);
    }
  }

  #onAnswer(answer: Answer<Touch>, changes: number): void {
    const { reply } = answer;
    const isSameSet = changes === this.#changes;
    this.#duties.onTouched(this.#key, answer);
    this.#hear(reply);
    if (reply.more) return this.#wakeIn(0);
    // The store lost some of our places (restart, or we were silent for too long): ask for all
    // anew.
    // rule: lost-places-are-asked-for-again
    if (isSameSet && reply.waiting + reply.grants.length < this.#waiting.size) {
      for (const acquisition of this.#waiting) acquisition.ask();
    }
    // rule: waiter-asks-when-the-holder-is-due
    this.#wakeIn(reply.holder ? reply.dueUs / 1000 : this.#periodMs);
  }

  #hear(reply: Touched): void {
    const holder = reply.holder && holderView(reply.holder);
    for (const acquisition of this.#waiting) acquisition.heard(holder);
  }

  /** Keeps the earliest of all times asked for, and never more than a period ahead. */
  #wakeIn(dueMs: number): void {
    if (this.isIdle) return;
    const { clock, timers } = this.#duties.port;
    const delayMs = Math.min(Math.max(1, dueMs) + 1 + this.#staggerMs, this.#periodMs);
    const wakeMs = clock.nowMs() + delayMs;
    if (wakeMs >= this.#timerMs) return;
    this.#timer?.cancel();
    this.#timerMs = wakeMs;
    this.#timer = timers.after(delayMs, () => void this.touch(), true);
  }
}
