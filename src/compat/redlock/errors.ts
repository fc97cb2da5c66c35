import type { ExecutionStats } from "./lock.js";

/** Another lock has one or more of the resources, by the word of one server. */
export class ResourceLockedError extends Error {
  /** Says for how many of the resources it was done. */
  override readonly message: string;

  constructor(message: string) {
    super(message);
    this.message = message;
    this.name = "ResourceLockedError";
  }
}

/** No majority of the servers did it. */
export class ExecutionError extends Error {
  /** Says what failed. */
  override readonly message: string;
  /** The votes of each attempt. */
  readonly attempts: readonly Promise<ExecutionStats>[];

  constructor(message: string, attempts: readonly Promise<ExecutionStats>[]) {
    super(message);
    this.message = message;
    this.attempts = attempts;
    this.name = "ExecutionError";
  }
}
