/// <reference lib="esnext.disposable" preserve="true" />
import { LeaseLostError, type LossReason, StoreError, UnsupportedError } from "../errors.js";
import type { Meta } from "../store.js";
import type { Clock } from "../time/clock.js";
import { encodeHandle } from "./handle.js";
import type { Hold } from "./hold.js";
import type { Keeper } from "./keeper.js";

/** What a holder owns after a grant. It ends as `released` or `lost`. */
export interface Lease extends AsyncDisposable {
  readonly name: string;
  /** The fencing number of this grant: hand it to whatever the work writes to. */
  readonly token: bigint;
  /** Aborts with a `LeaseLostError` at the deadline (minus `graceMs`) at the latest. */
  readonly signal: AbortSignal;
  /** By the clock, not by a flag: right even in the first statement after a blocked event loop. */
  readonly state: "held" | "released" | "lost";
  /** A secret by which `resume` continues this lease in another process; null unless transferable. */
  readonly handle: string | null;
  /** Stops renewing here and exempts the lease from `close`; returns the handle. */
  detach(): string;
  /** How long the lease can be relied on without a further renewal. */
  remainingMs(): number;
  /** Throws `LeaseLostError` unless the lease is held at this moment. */
  assertHeld(): void;
  /** Renews now, for `ttlMs` or for the same time again. Throws `LeaseLostError` or `StoreError`. */
  renew(ttlMs?: number): Promise<void>;
  /** True when it was held until now; false when it had been lost. Never throws, never hangs. */
  release(): Promise<boolean>;
}

/** The mark that the release of a finished `once` leaves. */
interface Keep {
  readonly ttlMs: number;
  readonly meta: Meta;
}

type GiveBack = (keep: Keep | undefined) => Promise<boolean>;

export class HeldLease implements Lease {
  readonly name: string;
  readonly token: bigint;
  readonly startMs: number;
  readonly #hold: Hold;
  readonly #keeper: Keeper;
  readonly #clock: Clock;
  readonly #giveBack: GiveBack;
  #released: Promise<boolean> | undefined;
  #loss: LeaseLostError | undefined;
  #isDetached = false;
  #controller: AbortController | undefined;
  #isWarned = false;

  constructor(
    hold: Hold,
    token: bigint,
    startMs: number,
    keeper: Keeper,
    clock: Clock,
    giveBack: GiveBack,
  ) {
    this.name = hold.grant.claim.name;
    this.token = token;
    this.startMs = startMs;
    this.#hold = hold;
    this.#keeper = keeper;
    this.#clock = clock;
    this.#giveBack = giveBack;
  }

  get hold(): Hold {
    return this.#hold;
  }

  get state(): "held" | "released" | "lost" {
    if (this.#released) return this.#loss ? "lost" : "released";
    return this.#isHeld() ? "held" : "lost";
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      this.#isHeld();
      this.#abort();
    }
    return this.#controller.signal;
  }

  get handle(): string | null {
    return this.#hold.grant.claim.transferable ? encodeHandle(this.#hold.grant) : null;
  }

  detach(): string {
    const { handle } = this;
    if (handle === null) {
      throw new UnsupportedError("Only a lease acquired with transferable: true can be detached.", {
        lockName: this.name,
      });
    }
    this.assertHeld();
    this.#isDetached = true;
    this.#keeper.detach(this.#hold);
    return handle;
  }

  remainingMs(): number {
    return this.#isHeld() ? Math.max(0, this.#hold.deadlineMs - this.#clock.nowMs()) : 0;
  }

  assertHeld(): void {
    if (this.#released && !this.#loss) throw this.#lossBy("missing", "it was released");
    if (!this.#isHeld()) throw this.#loss ?? this.#lossBy("expired", "");
  }

  async renew(ttlMs: number = this.#hold.ttlMs): Promise<void> {
    this.assertHeld();
    const renewal = await this.#keeper.renew(this.#hold, ttlMs);
    if (renewal.type === "unknown") {
      throw new StoreError("The renewal was not answered; the lease goes on until its deadline.", {
        outcome: "unknown",
        cause: renewal.error,
        lockName: this.name,
      });
    }
    this.assertHeld();
  }

  /** With `keep`, leaves a mark in its place. */
  release(keep?: Keep): Promise<boolean> {
    this.#released ??= this.#isHeld() ? this.#giveBack(keep) : Promise.resolve(false);
    return this.#released;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** The loss, when the lease was lost before it was released. */
  get loss(): LeaseLostError | undefined {
    if (!this.#released) this.#isHeld();
    return this.#loss;
  }

  onWarning(): void {
    this.#isWarned = true;
    this.#abort();
  }

  onLost(reason: LossReason, detail: string): void {
    if (this.#released) return;
    this.#loss = this.#lossBy(reason, detail);
    this.#abort();
  }

  #isHeld(): boolean {
    if (this.#loss || this.#released) return false;
    // A detached lease may go on elsewhere: here it is only known up to the last deadline.
    if (this.#isDetached) return this.#clock.exactMs() < this.#hold.deadlineMs;
    return this.#keeper.check(this.#hold);
  }

  #abort(): void {
    if (!this.#controller) return;
    const reason = this.#loss ?? (this.#isWarned ? this.#lossBy("expired", "") : undefined);
    if (reason) this.#controller.abort(reason);
  }

  #lossBy(reason: LossReason, detail: string): LeaseLostError {
    return new LeaseLostError(reason, { lockName: this.name, token: this.token, detail });
  }
}
