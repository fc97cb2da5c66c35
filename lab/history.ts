/**
 * The record of one trial: the steps of each process, the faults, and the truth of the store, by
 * one monotonic clock. The verdict and the pictures read nothing else. It is kept as JSON.
 */

/** A process of the trial, in the order in which it is drawn. */
export interface Lane {
  /** "A", "B", "C". */
  readonly id: string;
  readonly title: string;
}

/** The program asks for the lock, and waits for it. */
interface Asks {
  readonly type: "asks";
  readonly lane: string;
}

/** The lock's program says that this process holds the lock. */
interface Believes {
  readonly type: "believes";
  readonly lane: string;
  /** The fencing token in decimal digits, where there is one. */
  readonly token?: string;
}

/** The lock's program gave up: the process does not hold the lock, and does not wait any more. */
interface Refused {
  readonly type: "refused";
  readonly lane: string;
  readonly why: string;
}

/** The first step of work, and the end of the last one. Before each step the program checks. */
interface Works {
  readonly type: "worksFrom" | "worksTo";
  readonly lane: string;
}

/** The program calls release: it does not believe any more. */
interface Releases {
  readonly type: "releases";
  readonly lane: string;
}

/** A signal, an event or a rejection says that the lease is over. */
interface Told {
  readonly type: "told";
  readonly lane: string;
  readonly reason: string;
}

/** The program finds out, by its own check, that it does not hold the lock. */
interface Disbelieves {
  readonly type: "disbelieves";
  readonly lane: string;
  readonly why: string;
}

/** A write to the resource that the lock protects, as the resource saw it. */
interface Writes {
  readonly type: "writes";
  readonly lane: string;
  readonly isRefused: boolean;
  readonly token?: string;
}

export type FaultKind =
  | "killed"
  | "stopped"
  | "continued"
  | "blocked"
  | "unblocked"
  | "cut"
  | "healed"
  | "delayed"
  | "reply lost"
  | "request held"
  | "late copy"
  | "late release"
  | "restarted empty"
  | "failed over"
  | "clock shifted";

interface Fault {
  readonly type: "fault";
  /** The lane that the fault hits, or "store". */
  readonly lane: string;
  readonly what: FaultKind;
  /** The flag of the picture, in a few words. */
  readonly text: string;
}

/** The store's truth from here on: the lane whose value is in the key. */
interface Truth {
  readonly type: "truth";
  /** "ghost": a value by which no process believes. Null: the lock is free. */
  readonly holder: string | null;
  readonly token?: string;
}

export type Happening =
  | Asks
  | Believes
  | Refused
  | Works
  | Releases
  | Told
  | Disbelieves
  | Writes
  | Fault
  | Truth;

/** `atMs` counts from the start of the trial. */
export type Entry = { readonly atMs: number } & Happening;
export type EntryOf<T extends Happening["type"]> = Extract<Entry, { readonly type: T }>;

/**
 * - held: one at a time, and the lock came free when it had to
 * - told in time: a holder lost the lock, and stopped before the next one began
 * - told late: a holder lost the lock and was told, when the next one worked already
 * - two held: two worked at once, and neither was told
 * - stuck: no process held the lock, and a process that asked did not get it
 * - ghost: stuck behind a value in the store that belongs to no process
 * - overtaken: a process that asked later had the lock before one that waited
 */
export type VerdictKind =
  | "held"
  | "told in time"
  | "told late"
  | "two held"
  | "stuck"
  | "ghost"
  | "overtaken";

export interface Verdict {
  readonly kind: VerdictKind;
  /** How long two held, or how long the lock was stuck; null: forever. */
  readonly ms?: number | null;
  /** The verdict as a sentence without a full stop. */
  readonly text: string;
}

export interface History {
  /** The ids by which the command names them, such as "rung-3" and "lost-reply". */
  readonly subject: string;
  readonly fault: string;
  /** The names of both for people. */
  readonly subjectTitle: string;
  readonly faultTitle: string;
  readonly ttlMs: number;
  /** Of Node, the server, and the packages of the subject. */
  readonly versions: Readonly<Record<string, string>>;
  /** The command that runs this trial again. */
  readonly command: string;
  /** ISO 8601. */
  readonly startedAt: string;
  /** When the trial ended, from its start. */
  readonly durationMs: number;
  readonly verdict: Verdict;
  readonly lanes: readonly Lane[];
  /** In the order of time. */
  readonly entries: readonly Entry[];
}
