import { isFinal } from "../../errors.js";
import type { Release } from "../../rules/ledger-command.js";
import type { Limited, Limits } from "../../time/limits.js";
import { TimeLimitError } from "../../time/timers.js";
import type { ArbiterClient } from "./arbiter-client.js";
import { type Answer, CALL_TIMEOUT_MS, type Recipient } from "./channel.js";

const RETRY_MS = 50;
const NOT_STARTED = (): void => {};

/**
 * The release of one owner, repeated until it is answered or its time is over. The caller hears of
 * it by then; a request that is under way at that moment still gets its answer. It is the command
 * itself, which is the same each time.
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
  ) {
    this.key = key;
    this.owner = owner;
    this.tombstoneUs = tombstoneUs;
    this.keep = keep;
    this.#startMs = client.port.clock.nowMs();
    this.#limitMs = limitMs;
    this.#client = client;
  }

  get dueMs(): number {
    return this.#startMs + this.#limitMs;
  }

  /** With `limits`, the caller hears of it in time whatever the store does. */
  start(
    resolve: (wasHeld: boolean) => void,
    reject: (error: unknown) => void,
    limits: Limits | null = null,
  ): void {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#limits = limits;
    this.#send(this.#startMs);
    // The first call ends by its own time-out.
    if (this.#limitMs < CALL_TIMEOUT_MS && !this.#isOver) limits?.add(this);
  }

  onAnswer({ reply, resent }: Answer<Release>): void {
    const { key } = this;
    const { handoffChecks } = this.#client;
    this.#leave();
    if (reply.offerUs > 0) handoffChecks.checkAfter(key, reply.offerUs / 1000);
    if (reply.more) handoffChecks.serveMore(key);
    // An owner that is absent after a try of unknown outcome was released by that try: no other
    // owner can have taken the lock before.
    // rule: repeated-release-was-ours
    this.#resolve(reply.held || resent || this.#failures > 0);
  }

  onFailure(error: unknown): void {
    this.#failures += 1;
    const { clock, timers } = this.#client.port;
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

  #send(nowMs?: number): void {
    this.#client.channel.post(this, this, nowMs);
  }

  #leave(): void {
    this.#isOver = true;
    this.#limits?.remove(this);
    this.#client.grants.onLeft(this.owner);
  }
}
