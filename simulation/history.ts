/**
 * What happened, in the order of world time. Checkers read nothing else: what programs did and
 * believed, what the store's account says, and which faults there were.
 */
import { createHash } from "node:crypto";
import { NO_LIMIT } from "../src/rules/fits.js";

export type Mode = "exclusive" | "shared";

/** An acquisition is asked for, by a program. `lease` is its id from here on. */
export interface Asked {
  readonly type: "asked";
  readonly process: string;
  readonly lease: string;
  readonly name: string;
  readonly mode: Mode;
  readonly weight: number;
  readonly limit: number;
  /** How long it may take to be told the outcome; Infinity where only a grant ends it. */
  readonly withinMs: number;
  /** It stands in the queue when the lock is taken. */
  readonly waits: boolean;
}

/** `acquire` resolved: from here on the program relies on the lease. */
export interface Held {
  readonly type: "held";
  readonly process: string;
  readonly lease: string;
  /** Whom the store granted it to. */
  readonly owner: string;
  readonly name: string;
  readonly token: bigint;
  readonly mode: Mode;
  readonly weight: number;
  readonly limit: number;
  /** How long the store keeps it without a renewal. */
  readonly ttlMs: number;
  readonly renews: boolean;
  readonly graceMs: number;
  /** Renewed or not, it ends by then. */
  readonly longestMs: number;
  /** The most turns in a row that a grant may serve. */
  readonly turns: number;
  /** Somebody listens to its signal. */
  readonly listens: boolean;
}

/** Until when (world time) the program would rely on it without any further message. */
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

/** `release` is called: the program relies on it no longer. */
export interface Releasing {
  readonly type: "releasing";
  readonly lease: string;
}

export interface Released {
  readonly type: "released";
  readonly lease: string;
}

/** Its signal aborted. */
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

/** The work of a `once` succeeded: nobody else does it before `untilMs`. */
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
  /** It stood in the queue and was served, rather than asked and got it. */
  readonly isHandoff: boolean;
  /** The store's wall clock at that moment. */
  readonly clockUs: number;
}

/** The store confirmed, renewed or repeated a grant. */
export interface Extended {
  readonly type: "extended";
  readonly name: string;
  readonly token: bigint;
}

/** The store executed a release of this owner, whether it held, waited, or was unknown. */
export interface Withdrawn {
  readonly type: "withdrawn";
  readonly name: string;
  readonly owner: string;
  /** A copy of its requests may come later, and the release said so. */
  readonly isBuried: boolean;
}

export interface Revoked {
  readonly type: "revoked";
  readonly name: string;
  readonly token: bigint;
}

/** The store had reason to pass over the waiters of a client, until `cleared`. */
export interface Suspected {
  readonly type: "suspected" | "cleared";
  readonly name: string;
  readonly client: string;
}

/** The clock that leases run by jumped. */
export interface Stepped {
  readonly type: "stepped";
  readonly byMs: number;
}

/** The store lost all its data. */
export interface Forgot {
  readonly type: "forgot";
}

/** Something befell one of the nodes of a quorum, or it was told something. */
export interface NodeEvent {
  readonly type: "node";
  readonly node: number;
  readonly what: string;
}

/** No fault is injected from here on, and none has an effect any more. */
export interface Calm {
  readonly type: "calm";
}

/** Something is there at the end that should not be. */
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
  | Revoked
  | Suspected
  | Stepped
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

  /** In the order of time; what happened at one instant stays in the order of its recording. */
  entries(): readonly Entry[] {
    // A program that blocks records what it does afterwards before the others get that far.
    return this.#entries.sort((a, b) => a.atMs - b.atMs);
  }

  lines(): string[] {
    return this.entries().map(describe);
  }

  hash(): string {
    return createHash("sha256").update(this.lines().join("\n")).digest("hex").slice(0, 16);
  }
}

/** One line about an entry. */
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
