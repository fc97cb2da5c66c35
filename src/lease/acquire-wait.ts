import type { HolderView, Wait } from "../contract/store.js";
import type { Place } from "../rules/fifo.js";
import { type Limited, Limits } from "../time/limits.js";
import type { Runtime } from "../time/runtime.js";
import type { Timer } from "../time/timers.js";
import { type AbortListener, listen, unlisten } from "./abort-listeners.js";

/** An older answer of the store no longer says who holds the lock. */
const FRESH_MS = 1_000;

/** The store's last report of the holder. */
interface Report {
  readonly holder: HolderView | null;
  readonly grantsInMs: number;
  readonly atMs: number;
}

type OnReport = (holder: HolderView | null, ahead: number | null, grantsInMs: number) => void;

export type WaitEnd = "time" | "signal" | "closed" | "withdrawn";

/**
 * The wait of one acquisition. It ends by time, by its caller's signal, or when the client closes.
 * It sets no timer and no signal listener before `onEnd` or `start`.
 */
export class AcquireWait implements Wait, AbortListener, Limited, Place<AcquireWait> {
  readonly startMs: number;
  readonly untilMs: number;
  heapIndex = -1;
  /** Its neighbours among the waits of its client. */
  before: Place<AcquireWait> | null = null;
  behind: Place<AcquireWait> | null = null;
  readonly #runtime: Runtime;
  #limits: Limits | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #onReport: OnReport | undefined;
  #onNextReport: (() => void) | undefined;
  /** Ends the wait with the first report of the store. */
  endsWithReport = false;
  #listener: (() => void) | undefined;
  /** Called once after the listener, unless the wait is settled before it ends. */
  onOver: (() => void) | undefined;
  #timer: Timer | undefined;
  #isArmed = false;
  #endedBy: WaitEnd | null = null;
  #report: Report | null = null;

  /** `limits`: the shared timers; without them the wait makes its own. */
  constructor(
    runtime: Runtime,
    waitMs: number,
    signal: AbortSignal | undefined,
    onReport?: OnReport,
    limits?: Limits,
  ) {
    this.#runtime = runtime;
    this.#limits = limits;
    this.#signal = signal;
    this.#onReport = onReport;
    this.startMs = runtime.clock.nowMs();
    this.untilMs = this.startMs + waitMs;
  }

  /** The wait is its own list node. */
  get value(): AcquireWait {
    return this;
  }

  get dueMs(): number {
    return this.untilMs;
  }

  /** Without a listener, this reads the signal and the clock, so a store may poll it. */
  get ended(): boolean {
    if (!this.#isArmed) {
      if (this.#signal?.aborted) this.end("signal");
      else if (this.#runtime.clock.nowMs() >= this.untilMs) this.end("time");
    }
    return this.#endedBy !== null;
  }

  get endedBy(): WaitEnd | null {
    return this.#endedBy;
  }

  /** The last reported holder; its times include the time since. */
  get holder(): HolderView | null {
    if (!this.#report?.holder) return null;
    const { holder, atMs } = this.#report;
    const sinceMs = this.#runtime.clock.nowMs() - atMs;
    const remainingMs = Math.max(0, holder.remainingMs - sinceMs);
    return { ...holder, heldMs: holder.heldMs + sinceMs, remainingMs };
  }

  /** The last reported time until the store grants free locks; 0 if it already does. */
  get grantsInMs(): number {
    if (!this.#report) return 0;
    const { grantsInMs, atMs } = this.#report;
    return Math.max(0, grantsInMs - (this.#runtime.clock.nowMs() - atMs));
  }

  /** Whether the store has queued the acquisition. */
  get isReported(): boolean {
    return this.#report !== null;
  }

  /** Whether the store recently reported that the lock is held. */
  get hasRecentReport(): boolean {
    // This wait ends with the report, so the report's age does not matter.
    if (this.endsWithReport || !this.#report) return this.isReported;
    return this.#runtime.clock.nowMs() - this.#report.atMs <= FRESH_MS;
  }

  onEnd(listener: () => void): void {
    this.#listener = listener;
    if (this.#endedBy !== null) return listener();
    this.start();
  }

  /** Arms the timer and the signal, even if the store sets no listener. */
  start(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    if (this.#signal?.aborted) return this.end("signal");
    if (this.#signal) listen(this.#signal, this);
    if (this.untilMs === Number.POSITIVE_INFINITY) return;
    this.#limits ??= new Limits(this.#runtime);
    this.#limits.add(this);
  }

  onDue(): void {
    // rule: wait-ends-in-time
    this.end("time");
  }

  /** Its caller's signal aborted. */
  onAbort(): void {
    this.end("signal");
  }

  /** Calls back once, when the store next reports that it has queued the acquisition. */
  onNextReport(listener: () => void): void {
    this.#onNextReport = listener;
  }

  report(holder: HolderView | null, ahead: number | null = null, grantsInMs = 0): void {
    this.#onReport?.(holder, ahead, grantsInMs);
    this.#report = { holder, grantsInMs, atMs: this.#runtime.clock.nowMs() };
    const onNextReport = this.#onNextReport;
    this.#onNextReport = undefined;
    onNextReport?.();
    if (!this.endsWithReport || this.ended) return;
    this.#limits?.remove(this);
    this.#timer?.cancel();
    // In a later turn, because the store is in the middle of its work.
    this.#timer = this.#runtime.timers.after(0, () => this.end("time"), true);
  }

  /** Takes over the last report of another wait for the same lock. */
  learnFrom(other: AcquireWait): void {
    this.#report = other.#report;
  }

  end(by: WaitEnd): void {
    if (this.#endedBy !== null) return;
    this.#endedBy = by;
    const { onOver } = this;
    const listener = this.#listener;
    this.settle();
    listener?.();
    onOver?.();
  }

  /** Drops the timer and the signal without calling a listener. */
  settle(): void {
    this.#listener = undefined;
    this.onOver = undefined;
    if (!this.#isArmed) return;
    this.#timer?.cancel();
    // rule: settled-wait-leaves-no-timer
    this.#limits?.remove(this);
    if (this.#signal) unlisten(this.#signal, this);
  }
}
