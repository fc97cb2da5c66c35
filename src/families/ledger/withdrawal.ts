import { isFinal } from "../../errors/index.js";
import type { Inspect, Release } from "../../rules/ledger-command.js";
import type { Limited, Limits } from "../../time/limits.js";
import { TimeLimitError } from "../../time/timers.js";
import type { ArbiterClient } from "./arbiter-client.js";
import { type Answer, CALL_TIMEOUT_MS, type Recipient } from "./command-batcher.js";

const RETRY_MS = 50;
const NOT_STARTED = (): void => {};

/**
 * The release of one owner, repeated until it is answered or its time is up. The caller gets the
 * result by then; a request that is pending at that moment still handles its answer. The object is
 * also the command that is sent, which is the same each time.
 */
export class Withdrawal implements Release, Recipient<Release>, Limited {
  readonly type = "release";
  readonly key: string;
  readonly owner: string;
  readonly tombstoneUs: number;
  readonly keep: Release["keep"];
  readonly #startMs: number;
  readonly #limitMs: number;
  readonly #client: ArbiterClient;
  /** The token of the lease, which its mark also has; null without a mark. */
  readonly #token: bigint | null;
  #resolve: (wasHeld: boolean) => void = NOT_STARTED;
  #reject: (error: unknown) => void = NOT_STARTED;
  #limits: Limits | null = null;
  #failures = 0;
  #isDue = false;
  #isOver = false;
  heapIndex = -1;

  constructor(
    { key, owner, tombstoneUs }: Omit<Release, "type" | "keep">,
    keep: Release["keep"],
    limitMs: number,
    client: ArbiterClient,
    token: bigint | null = null,
  ) {
    this.key = key;
    this.owner = owner;
    this.tombstoneUs = tombstoneUs;
    this.keep = keep;
    this.#startMs = client.runtime.clock.nowMs();
    this.#limitMs = limitMs;
    this.#client = client;
    this.#token = token;
  }

  get dueMs(): number {
    return this.#startMs + this.#limitMs;
  }

  /** With `limits`, the caller gets a result in time, whatever the store does. */
  start(
    resolve: (wasHeld: boolean) => void,
    reject: (error: unknown) => void,
    limits: Limits | null = null,
  ): void {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#limits = limits;
    this.#client.releases.add(this.key);
    this.#send();
    // Otherwise the timeout of the first call comes first.
    if (this.#limitMs < CALL_TIMEOUT_MS && !this.#isOver) limits?.add(this);
  }

  onAnswer({ reply, resent }: Answer<Release>): void {
    const { key, keep } = this;
    const { handoffChecks } = this.#client;
    if (reply.offerUs > 0) handoffChecks.checkAfter(key, reply.offerUs / 1000);
    if (reply.more) handoffChecks.serveMore(key);
    if (keep && !reply.held && (resent || this.#failures > 0)) return this.#lookForMark(keep);
    this.#leave();
    // If the owner is absent after a try with unknown outcome, that try released it.
    // rule: repeated-release-was-ours
    this.#resolve(reply.held || resent || this.#failures > 0);
  }

  onFailure(error: unknown): void {
    this.#failures += 1;
    const { clock, timers } = this.#client.runtime;
    const pauseMs = RETRY_MS * this.#failures;
    if (this.#isDue || isFinal(error) || clock.nowMs() + pauseMs >= this.dueMs) {
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
    this.#client.batcher.post(this, this);
  }

  /**
   * Checks for the mark when the owner is absent after a try with unknown outcome. If that try
   * released the owner, the mark is there. If the lease was revoked or expired before, there is no
   * mark: the work may run again, and the caller must know.
   */
  #lookForMark({ ttlUs }: NonNullable<Release["keep"]>): void {
    if (this.#isDue) return this.#leave();
    const keptMs = this.#client.runtime.clock.nowMs() - this.#startMs;
    // The mark may have expired since.
    if (keptMs * 1000 >= ttlUs) return this.#end(true);
    if (this.heapIndex < 0) this.#limits?.add(this);
    const recipient: Recipient<Inspect> = {
      onAnswer: ({ reply: { mark } }) =>
        this.#end(mark !== null && BigInt(mark.token) === this.#token),
      onFailure: (error) => this.onFailure(error),
    };
    this.#client.batcher.post({ type: "inspect", key: this.key }, recipient);
  }

  #end(wasHeld: boolean): void {
    this.#leave();
    this.#resolve(wasHeld);
  }

  #leave(): void {
    this.#isOver = true;
    this.#limits?.remove(this);
    const { grants, releases } = this.#client;
    grants.onLeft(this.owner);
    releases.remove(this.key);
  }
}

/** Counts the unanswered releases of each name. Shared locks may have several at a time. */
export class UnansweredReleases {
  readonly #counts = new Map<string, number>();

  has(key: string): boolean {
    return this.#counts.has(key);
  }

  add(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  remove(key: string): void {
    const count = this.#counts.get(key) ?? 0;
    if (count > 1) this.#counts.set(key, count - 1);
    else this.#counts.delete(key);
  }
}
