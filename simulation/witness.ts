import type { HeldLease } from "../src/lease/lease.js";
import type { Held, History } from "./history.js";
import type { SimulatedProcess } from "./process.js";

/**
 * A lease in use, with its last recorded deadline, by the clock of its process and in world time.
 */
interface Watched {
  readonly id: string;
  readonly lease: HeldLease;
  readonly isProbed: boolean;
  deadlineMs: number;
  untilMs: number;
}

/** The part of a `held` entry that the program knows; the witness adds the rest. */
export type Terms = Omit<Held, "type" | "process" | "lease" | "owner" | "token">;

/** Records until when a process believes in its leases, without influencing them. */
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
   * The lease is held from now on. Where the program listens, `onLost` is called when the signal
   * aborts.
   */
  watch(id: string, lease: HeldLease, terms: Terms, isProbed: boolean, onLost: () => void): void {
    const { id: process, nowMs } = this.#process;
    const { token } = lease;
    const { owner } = lease.held.grant.claim;
    // The grant of this lease may have ended another one.
    for (const watched of this.#watched.values()) this.#look(watched);
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

  /** The program does not rely on the lease any more. */
  dismiss(id: string): void {
    this.#watched.delete(id);
    this.#history.record(this.#process.nowMs, { type: "releasing", lease: id });
  }

  /** Reads the deadline directly: a call of the lease would make the lease read the clock. */
  #look(watched: Watched): void {
    const { held } = watched.lease;
    const deadlineMs = held.isLive ? held.deadlineMs : Number.NEGATIVE_INFINITY;
    // The end of a grant is known whatever the clock shows.
    if (deadlineMs === watched.deadlineMs || (held.isLive && this.#process.isBlind)) return;
    watched.deadlineMs = deadlineMs;
    const { nowMs } = this.#process;
    watched.untilMs = held.isLive
      ? this.#process.worldMs(deadlineMs)
      : Math.min(watched.untilMs, nowMs);
    const { id, untilMs } = watched;
    this.#history.record(nowMs, { type: "believed", lease: id, untilMs });
  }
}
