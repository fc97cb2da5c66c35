/**
 * The record of one run, in the order of world time: the actions and beliefs of programs, the
 * account of the store, and the faults. Checkers read nothing else.
 */
import { createHash } from "node:crypto";
import { NO_LIMIT } from "../src/rules/fits.js";

export type Mode = "exclusive" | "shared";

/** A program asks for a lock. `lease` is the id of this acquisition from here on. */
export interface Asked {
  readonly type: "asked";
  readonly process: string;
  readonly lease: string;
  readonly name: string;
  readonly mode: Mode;
  readonly weight: number;
  readonly limit: number;
  /** The program must get a result within this; Infinity where only a grant ends the wait. */
  readonly withinMs: number;
  /** The acquisition queues when the lock is taken. */
  readonly waits: boolean;
}

/** `acquire` resolved: from here on the program relies on the lease. */
export interface Held {
  readonly type: "held";
  readonly process: string;
  readonly lease: string;
  /** The owner that the store granted the lock to. */
  readonly owner: string;
  readonly name: string;
  readonly token: bigint;
  readonly mode: Mode;
  readonly weight: number;
  readonly limit: number;
  /** How long the store keeps the lease without a renewal. */
  readonly ttlMs: number;
  readonly renews: boolean;
  readonly graceMs: number;
  /** Renewed or not, the lease ends after this. */
  readonly longestMs: number;
  /** The most turns in a row that a grant may serve. */
  readonly turns: number;
  /** The program listens to the signal of the lease. */
  readonly listens: boolean;
}

/** Until when (world time) the program relies on the lease if no further message comes. */
export interface Believed {
  readonly type: "believed";
  readonly lease: string;
  readonly untilMs: number;
}

/** `assertHeld` passed, or threw. */
export interface Probed {
  readonly type: "probed";
  readonly lease: string;
  readonly holds: boolean;
}

/** `release` is called: the program does not rely on the lease any more. */
export interface Releasing {
  readonly type: "releasing";
  readonly lease: string;
}

export interface Released {
  readonly type: "released";
  readonly lease: string;
}

/** The signal of the lease aborted. */
export interface Lost {
  readonly type: "lost";
  readonly lease: string;
  readonly reason: string;
}

/** The acquisition ended without a lease. */
export interface Refused {
  readonly type: "refused";
  readonly lease: string;
  readonly reason: string;
}

/** The work of a `once` succeeded: no process may do it again before `untilMs`. */
export interface Done {
  readonly type: "done";
  readonly name: string;
  readonly lease: string;
  readonly untilMs: number;
}

export interface Crashed {
  readonly type: "crashed";
  readonly process: string;
}

/** The program does nothing from `at` to `untilMs`. */
export interface Frozen {
  readonly type: "frozen";
  readonly process: string;
  readonly untilMs: number;
  readonly how: "paused" | "blocked" | "suspended";
}

/** The store put an owner into the queue. */
export interface Queued {
  readonly type: "queued";
  readonly name: string;
  readonly owner: string;
  readonly client: string;
}

export interface Granted {
  readonly type: "granted";
  readonly name: string;
  readonly owner: string;
  readonly client: string;
  readonly token: bigint;
  readonly span: number;
  /** The owner was served from the queue; its request was not granted at once. */
  readonly isHandoff: boolean;
  /** How long the grant lasts from now on, by the clock of the store. */
  readonly remainingMs: number;
  /** The store's wall clock at that moment. */
  readonly clockUs: number;
}

/** The store confirmed, renewed or repeated a grant. */
export interface Extended {
  readonly type: "extended";
  readonly name: string;
  readonly token: bigint;
  /** How long the lease lasts from now on, by the clock of the store. */
  readonly remainingMs: number;
}

/** The store executed a release of this owner, whether it held, waited, or was unknown. */
export interface Withdrawn {
  readonly type: "withdrawn";
  readonly name: string;
  readonly owner: string;
  /**
   * How long its tombstone stays, because a copy of a request may come later. Negative: such a copy
   * is too late already. 0: there is none.
   */
  readonly buriedMs: number;
}

/** The store ended the wait of this owner: its client was silent for too long, or a mark came. */
export interface Dropped {
  readonly type: "dropped";
  readonly name: string;
  readonly owner: string;
}

export interface Revoked {
  readonly type: "revoked";
  readonly name: string;
  readonly token: bigint;
}

/** Which grants of a name have ended: that with a token, or those of an owner before `saidMs`. */
export type Ended =
  | { readonly name: string; readonly token: bigint }
  | { readonly name: string; readonly owner: string; readonly saidMs: number };

/**
 * The store told a process that grants have ended. Recorded at the end of the turn in which the
 * message was delivered: from then on the process knows.
 */
export type Told = { readonly type: "told"; readonly process: string } & Ended;

/** The store ended the session of an entry that holds, because its time was over. */
export interface Lapsed {
  readonly type: "lapsed";
  readonly name: string;
  readonly token: bigint;
}

/** The store passes over the waiters of this client while it is unresponsive. */
export interface Responsiveness {
  readonly type: "unresponsive" | "responsive";
  readonly name: string;
  readonly client: string;
}

/** The clock that leases run by jumped. */
export interface Stepped {
  readonly type: "stepped";
  readonly byMs: number;
  /** The node of a quorum whose clock jumped, and the owners that had its vote. */
  readonly node?: number;
  readonly owners?: readonly string[];
}

/** A node of a quorum renewed its vote for an owner. */
export interface VoteRenewed {
  readonly type: "vote renewed";
  readonly node: number;
  readonly name: string;
  readonly owner: string;
}

/** The store lost all its data. */
export interface Forgot {
  readonly type: "forgot";
}

/** A fault of a node of a quorum, or an instruction to it. */
export interface NodeEvent {
  readonly type: "node";
  readonly node: number;
  readonly what: string;
  /** The owners that had the vote of the node when it restarted. */
  readonly owners?: readonly string[];
}

/** From here on no fault is injected, and no earlier fault has an effect. */
export interface Calm {
  readonly type: "calm";
}

/** At the end there are things that should be gone. */
export interface LeftBehind {
  readonly type: "left";
  readonly what: string;
  readonly count: number;
}

export type Happening =
  | Asked
  | Held
  | Believed
  | Probed
  | Releasing
  | Released
  | Lost
  | Refused
  | Done
  | Crashed
  | Frozen
  | Queued
  | Granted
  | Extended
  | Withdrawn
  | Dropped
  | Revoked
  | Told
  | Lapsed
  | Responsiveness
  | Stepped
  | VoteRenewed
  | Forgot
  | NodeEvent
  | Calm
  | LeftBehind;

export type Entry = { readonly atMs: number } & Happening;
export type EntryOf<T extends Happening["type"]> = Entry & { readonly type: T };

export class History {
  readonly #entries: Entry[] = [];

  record(atMs: number, happening: Happening): void {
    this.#entries.push({ atMs, ...happening });
  }

  /** In the order of time; entries of one instant keep the order in which they were recorded. */
  entries(): readonly Entry[] {
    // A program that blocks is ahead of world time, and so are its entries.
    return this.#entries.sort((a, b) => a.atMs - b.atMs);
  }

  lines(): string[] {
    return this.entries().map(describe);
  }

  hash(): string {
    return createHash("sha256").update(this.lines().join("\n")).digest("hex").slice(0, 16);
  }
}

/** An entry as one line of text. */
export function describe(entry: Entry): string {
  const { atMs, type, ...rest } = entry;
  const parts = Object.entries(rest).map(([key, value]) => `${key}=${show(value)}`);
  return `${atMs.toFixed(3).padStart(11)} ${type.padEnd(9)} ${parts.join(" ")}`;
}

function show(value: unknown): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return String(value);
  if (value === NO_LIMIT) return "none";
  return Number.isInteger(value) ? String(value) : value.toFixed(3);
}
