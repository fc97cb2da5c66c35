import type { HeldLease } from "../src/lease/lease.js";
import type { Held, History } from "./history.js";
import type { SimulatedProcess } from "./process.js";

/**
 * A lease in use, with its last deadline that was written down, by its own clock and the world's.
 */
interface Watched {
  readonly id: string;
  readonly lease: HeldLease;
  readonly isProbed: boolean;
  deadlineMs: number;
  untilMs: number;
}

/** What a program says of its lease; the rest the witness finds out. */
export type Terms = Omit<Held, "type" | "process" | "lease" | "owner" | "token">;

/** Writes down what the leases of a process are believed to be, without touching them. */
export class Witness {
  readonly #process: SimulatedProcess;
  readonly #history: History;
  readonly #watched = new Map<string, Watched>();

  constructor(process: SimulatedProcess, history: History) {
    this.#process = process;
    this.#history = history;
    process.onTurnEnd(() => {
      for (const watched of this.#watched.values()) this.#look(watched);
    });
    process.onAwake(() => {
      for (const { id, isProbed } of this.#watched.values()) if (isProbed) this.probe(id);
    });
  }

  /**
   * The lease is held from now on; `onLost` is called when its signal aborts, if anybody listens.
   */
  watch(id: string, lease: HeldLease, terms: Terms, isProbed: boolean, onLost: () => void): void {
    const { id: process, nowMs } = this.#process;
    const { token } = lease;
    const { owner } = lease.hold.grant.claim;
    this.#history.record(nowMs, { type: "held", process, lease: id, owner, token, ...terms });
    const watched = {
      id,
      lease,
      isProbed,
      deadlineMs: Number.NaN,
      untilMs: Number.POSITIVE_INFINITY,
    };
    this.#watched.set(id, watched);
    this.#look(watched);
    if (!terms.listens) return;
    const onAbort = (): void => {
      const { reason } = lease.signal.reason;
      this.#history.record(this.#process.nowMs, { type: "lost", lease: id, reason });
      onLost();
    };
    if (lease.signal.aborted) onAbort();
    else lease.signal.addEventListener("abort", onAbort, { once: true });
  }

  /** Whether `assertHeld` passes at this moment. */
  probe(id: string): boolean {
    let holds = true;
    try {
      this.#watched.get(id)?.lease.assertHeld();
    } catch {
      holds = false;
    }
    this.#history.record(this.#process.nowMs, { type: "probed", lease: id, holds });
    return holds;
  }

  /** The program relies on it no longer. */
  dismiss(id: string): void {
    this.#watched.delete(id);
    this.#history.record(this.#process.nowMs, { type: "releasing", lease: id });
  }

  /** The deadline is read as it is: to ask the lease would make it look at the clock. */
  #look(watched: Watched): void {
    const { hold } = watched.lease;
    const deadlineMs = hold.isLive ? hold.deadlineMs : Number.NEGATIVE_INFINITY;
    if (deadlineMs === watched.deadlineMs || this.#process.isBlind) return;
    watched.deadlineMs = deadlineMs;
    const { nowMs } = this.#process;
    watched.untilMs = hold.isLive
      ? this.#process.worldMs(deadlineMs)
      : Math.min(watched.untilMs, nowMs);
    const { id, untilMs } = watched;
    this.#history.record(nowMs, { type: "believed", lease: id, untilMs });
  }
}
