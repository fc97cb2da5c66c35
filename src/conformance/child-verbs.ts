import type { AcquireOptions } from "../options/options.js";
import type { Count } from "./shared-counter.js";

/** A lock, described in JSON for the child process. */
export interface LockChoice {
  readonly kind: "mutex" | "read" | "write" | "semaphore" | "election";
  readonly name: string;
  /** The limit of a semaphore. */
  readonly limit?: number;
}

/** Options that can be sent to another process. */
export type ChildOptions = Omit<AcquireOptions, "signal">;

/** The state of a lease in the child process. The parent names a lease by its token. */
export interface LeaseReport {
  readonly state: "held" | "released" | "lost";
  readonly remainingMs: number;
  /** The code of the error that `assertHeld` threw, or null. */
  readonly assertion: string | null;
}

/** The calls that the parent makes in the child process. */
export interface ChildVerbs {
  /** Resolves when the store's messages reach this client, see warm-up.ts. */
  warmUp(): Promise<void>;
  /** Resolves with the token when the lock is granted. */
  acquire(lock: LockChoice, options?: ChildOptions): Promise<bigint>;
  tryAcquire(lock: LockChoice, options?: ChildOptions): Promise<bigint | null>;
  release(token: bigint): Promise<boolean>;
  report(token: bigint): Promise<LeaseReport>;
  /** Detaches the lease and returns its handle. */
  detach(token: bigint): Promise<string>;
  /** Resumes a lease and returns its token, or null. */
  resume(handle: string): Promise<bigint | null>;
  /** Runs that many contenders at once; each adds one to the counter under the lock. */
  count(lock: LockChoice, file: string, contenders: number): Promise<readonly Count[]>;
  close(): Promise<void>;
  /** Stops the process by SIGSTOP after a pause in which requests under way have ended. */
  stop(): Promise<void>;
  /** Disconnects from the parent: only the locks can keep the process alive then. */
  leave(): Promise<void>;
  /**
   * Disconnects from the parent while an acquire waits for a lease of the same process. That lease
   * is released after `afterMs`. Then prints "granted", and closes.
   */
  leaveWaiting(lock: LockChoice, holder: bigint, afterMs: number): Promise<void>;
}

/** A message from the parent. */
export interface ChildCall {
  readonly id: number;
  readonly verb: keyof ChildVerbs;
  readonly args: readonly unknown[];
}

/** A message to the parent. */
export type ChildMessage =
  | { readonly type: "ready" }
  | { readonly type: "value"; readonly id: number; readonly value: unknown }
  | { readonly type: "error"; readonly id: number; readonly code: string; readonly message: string }
  /** A lease was lost at `atMs` of `machineMs`. */
  | {
      readonly type: "lost";
      readonly token: bigint;
      readonly reason: string;
      readonly atMs: number;
    };
