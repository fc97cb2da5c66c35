/**
 * The messages between the thread of a caller and the thread of its store. Both are of one version
 * of this package, so a message is trusted. Messages travel in lists: those of one turn together.
 */
import type { MessagePort } from "node:worker_threads";
import type { Examination } from "../contract/examination.js";
import type {
  Busy,
  Claim,
  HolderView,
  LockView,
  Meta,
  Renewal,
  RenewalReport,
  RenewalTerms,
  Traits,
} from "../contract/store.js";
import type { LossReason } from "../errors/index.js";
import type { Space } from "../rules/name.js";
import type { ErrorCopy } from "./error-copy.js";

/** The data that a new thread is given. */
export interface ThreadOptions {
  /** See `clockMemory`. Its name tells this thread from those of others. */
  readonly holdfastClock: SharedArrayBuffer;
}

/** Asks the thread to serve one more store. All calls for that store come through the port. */
export interface ServeRequest {
  readonly port: MessagePort;
  /** See `ExitSignal`. */
  readonly exit: SharedArrayBuffer;
  /** See `Backlog`. */
  readonly backlog: SharedArrayBuffer;
}

/** A grant; the thread of the store has it under this number. */
export interface GrantCopy {
  readonly type: "granted";
  readonly grant: number;
  /** The owner of its claim; after a retry it may differ from the one asked with. */
  readonly owner: string;
  readonly token: bigint;
  readonly span: number;
  readonly locator: string | null;
  readonly isHandoff: boolean;
  /** See `SharedGrant`. */
  readonly memory: SharedArrayBuffer;
}

export type RenewalCopy =
  | Exclude<Renewal, { type: "unknown" }>
  | { readonly type: "unknown"; readonly error: ErrorCopy };

/** The calls, as the thread of the store answers them. */
export interface Calls {
  /** The first call: opens the store of a URL. */
  open(url: string): Opened;
  /** `untilMs`: when the wait ends; null means not to wait. */
  acquire(claim: Claim, untilMs: number | null): GrantCopy | Busy;
  renew(grants: readonly { readonly grant: number; readonly ttlMs: number }[]): RenewalCopy[];
  release(
    grant: number,
    withinMs: number,
    keep: { readonly ttlMs: number; readonly meta: Meta } | undefined,
  ): boolean;
  resume(claim: Claim, token: bigint, locator: string | null): GrantCopy | null;
  inspect(space: Space, name: string): LockView;
  /** The number of a list, for `next`. */
  list(space: Space, prefix: string): number;
  next(list: number): LockView | null;
  revoke(space: Space, name: string, token: bigint, reason: string): boolean;
  /** Null: the store has no better error. */
  explain(error: ErrorCopy): ErrorCopy | null;
  examine(ttlMs: number): Examination;
  /** The clock of the store. */
  now(): number;
  close(): void;
}

export type CallName = keyof Calls;

export type ToThread =
  | {
      readonly type: "call";
      readonly id: number;
      readonly name: CallName;
      readonly args: readonly unknown[];
    }
  /** The caller no longer wants the answer to an acquire or to an examination. */
  | { readonly type: "cancel"; readonly id: number }
  | { readonly type: "keep"; readonly grant: number; readonly terms: RenewalTerms }
  | { readonly type: "detach"; readonly grant: number }
  | { readonly type: "endList"; readonly list: number }
  /** The process exits: see exit-release.ts. */
  | { readonly type: "exit" };

/** A store that was opened. */
export interface Opened {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly traits: Traits;
  readonly explains: boolean;
  readonly examines: boolean;
}

export type RenewalReportCopy = Omit<RenewalReport, "error"> & { readonly error?: ErrorCopy };

export type FromThread =
  | { readonly type: "answer"; readonly id: number; readonly value: unknown }
  | { readonly type: "failure"; readonly id: number; readonly error: ErrorCopy }
  | {
      readonly type: "report";
      readonly id: number;
      readonly holder: HolderView | null;
      readonly ahead: number | null;
      readonly grantsInMs: number;
    }
  | {
      readonly type: "gone";
      readonly grant: number;
      readonly reason: LossReason;
      readonly detail: string;
    }
  | { readonly type: "renewal"; readonly grant: number; readonly report: RenewalReportCopy }
  /** The store threw outside of a call. Its grants have ended, and it answers nothing more. */
  | { readonly type: "failed"; readonly error: ErrorCopy }
  /** The store has published an event; `error` is that of a `ForeignEvent`. */
  | {
      readonly type: "published";
      readonly channel: "foreign" | "polling" | "warning";
      readonly event: object;
      readonly error?: ErrorCopy;
    };
