/** The messages between a trial and the processes in which its subject runs. */
import type { Happening } from "./history.js";
import type { Endpoint } from "./subjects/subject.js";

/** The part of a process in one trial. */
export interface Setting extends Endpoint {
  readonly subject: string;
  readonly lane: string;
}

export type Order =
  /** Connect, and say "ready". The first order of a trial. */
  | { readonly order: "open"; readonly setting: Setting }
  /** Ask for the lock. When it comes: work, and check before each step. */
  | { readonly order: "acquire" }
  /** End the work and release. */
  | { readonly order: "finish" }
  /** Work for so long without a turn of the event loop. */
  | { readonly order: "block"; readonly forMs: number }
  /** End the work; check once more, and say "checked". */
  | { readonly order: "check" }
  /** Write to the resource, without a further check. */
  | { readonly order: "write" }
  /** Close all connections, and say "closed". The last order of a trial that is over. */
  | { readonly order: "close" };

/** Steps that are not part of the history. */
export type Notice =
  | { readonly type: "ready" }
  /** `isWhole`: the process may serve another trial. */
  | { readonly type: "closed"; readonly isWhole: boolean }
  | { readonly type: "released" }
  | { readonly type: "checked" }
  /** A timer of the process was so late. */
  | { readonly type: "late"; readonly byMs: number }
  /** A write to the resource, which the trial accepts or refuses. */
  | { readonly type: "writing"; readonly token?: string };

/** `atMs` is the machine's monotonic clock. */
export type Report = { readonly atMs: number } & (Happening | Notice);

/** The one lock of each trial. */
export const LOCK_NAME = "lab-lock";
