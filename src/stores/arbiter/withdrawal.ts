import { StoreError } from "../../errors.js";
import type { Release } from "../../rules/ledger-command.js";
import type { Limited, Limits } from "../../time/limits.js";
import type { Port } from "../../time/port.js";
import { TimeLimitError } from "../../time/timers.js";
import { type Answer, CALL_TIMEOUT_MS, type Channel, type Recipient } from "./channel.js";

const RETRY_MS = 50;

/** What the store around it does for a withdrawal. */
export interface WithdrawalDuties {
  readonly port: Port;
  readonly channel: Channel;
  /** The name went to somebody who has so long to confirm it. */
  onHandedOff(key: string, offerMs: number): void;
  /** The store has more waiters to serve at the name. */
  onMore(key: string): void;
  /** Nothing of it is under way any more. */
  onLeft(owner: string): void;
}

/**
 * An owner leaves: its release is repeated until it is answered or its time is over. Whoever asked
 * is told by then; what is under way at that moment is still heard out.
 */
export class Withdrawal implements Recipient<Release>, Limited {
  readonly command: Release;
  readonly dueMs: number;
  readonly #limitMs: number;
  readonly #duties: WithdrawalDuties;
  readonly #resolve: (wasHeld: boolean) => void;
  readonly #reject: (error: unknown) => void;
  #limits: Limits | null = null;
  #failures = 0;
  #isDue = false;
  #isOver = false;
  heapIndex = -1;

  constructor(
    command: Release,
    limitMs: number,
    duties: WithdrawalDuties,
    resolve: (wasHeld: boolean) => void,
    reject: (error: unknown) => void,
  ) {
    this.command = command;
    this.dueMs = duties.port.clock.nowMs() + limitMs;
    this.#limitMs = limitMs;
    this.#duties = duties;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** With `limits`, whoever asked is told in time whatever happens. */
  start(limits: Limits | null): void {
    this.#limits = limits;
    this.#send();
    // The first call ends by its own time-out.
    if (this.#limitMs < CALL_TIMEOUT_MS && !this.#isOver) limits?.add(this);
  }

  onAnswer({ reply, resent }: Answer<Release>): void {
    this.#leave();
    if (reply.offerUs > 0) this.#duties.onHandedOff(this.command.key, reply.offerUs / 1000);
    if (reply.more) this.#duties.onMore(this.command.key);
    // Absent after a try of unknown outcome: that try released it, for nobody else could yet.
    // rule: repeated-release-was-ours
    this.#resolve(reply.held || resent || this.#failures > 0);
  }

  onFailure(error: unknown): void {
    this.#failures += 1;
    const { clock, timers } = this.#duties.port;
    const pauseMs = RETRY_MS * this.#failures;
    const isFinal = error instanceof StoreError && !error.retryable;
    if (this.#isDue || isFinal || clock.nowMs() + pauseMs >= this.dueMs) {
      this.#leave();
      return this.#reject(error);
    }
    if (this.heapIndex < 0) this.#limits?.add(this);
    timers.after(pauseMs, () => {
      if (this.#isDue) this.#leave();
      else this.#send();
    });
  }

  onDue(): void {
    this.#isDue = true;
    this.#reject(new TimeLimitError(this.#limitMs));
  }

  #send(): void {
    this.#duties.channel.post(this.command, this);
  }

  #leave(): void {
    this.#isOver = true;
    this.#limits?.remove(this);
    this.#duties.onLeft(this.command.owner);
  }
}
