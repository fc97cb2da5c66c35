import type { AcquireOptions } from "../options.js";
import type { Count } from "./shared-counter.js";

/** A lock, as one process names it to another. */
export interface LockChoice {
  readonly kind: "mutex" | "read" | "write" | "semaphore" | "election";
  readonly name: string;
  /** Of a semaphore. */
  readonly limit?: number;
}

/** Options that survive the way to another process. */
export type ChildOptions = Omit<AcquireOptions, "signal">;

/** What a lease is, seen from outside; its token is how the parent names it. */
export interface LeaseReport {
  readonly state: "held" | "released" | "lost";
  readonly remainingMs: number;
  /** The code of what `assertHeld` threw. */
  readonly assertion: string | null;
}

/** What a client in another process does when it is told to. */
export interface ChildVerbs {
  /** From now on the store is known to reach this client. */
  warmUp(): Promise<void>;
  /** The token, when it is granted. */
  acquire(lock: LockChoice, options?: ChildOptions): Promise<bigint>;
  tryAcquire(lock: LockChoice, options?: ChildOptions): Promise<bigint | null>;
  release(token: bigint): Promise<boolean>;
  report(token: bigint): Promise<LeaseReport>;
  /** Stops renewing and returns the handle. */
  detach(token: bigint): Promise<string>;
  /** The token of the lease that a handle continues. */
  resume(handle: string): Promise<bigint | null>;
  /** So many contenders at once, each of which counts one up under the lock. */
  count(lock: LockChoice, file: string, contenders: number): Promise<readonly Count[]>;
  close(): Promise<void>;
  /** Resolves when the process has done what it had to do for now. */
  rest(): Promise<void>;
  /** Hangs up: from now on nothing but the locks can keep the process alive. */
  leave(): Promise<void>;
  /**
   * Hangs up while an acquire waits for a lease of this very process, which is released after
   * `afterMs`. Then prints "granted", and closes.
   */
  leaveWaiting(lock: LockChoice, holder: bigint, afterMs: number): Promise<void>;
}

/** From the parent. */
export interface ChildCall {
  readonly id: number;
  readonly verb: keyof ChildVerbs;
  readonly args: readonly unknown[];
}

/** To the parent. */
export type ChildMessage =
  | { readonly type: "ready" }
  | { readonly type: "value"; readonly id: number; readonly value: unknown }
  | { readonly type: "error"; readonly id: number; readonly code: string; readonly message: string }
  /** A lease was lost at this time of the machine's clock. */
  | {
      readonly type: "lost";
      readonly token: bigint;
      readonly reason: string;
      readonly atMs: number;
    };
