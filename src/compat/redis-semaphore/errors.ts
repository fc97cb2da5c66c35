/** The lock was lost: it could not be refreshed before its deadline. */
export class LostLockError extends Error {
  /** The name of the class. */
  override name = "LostLockError";
}

/** The lock was not acquired in time, or within the attempts that are allowed. */
export class TimeoutError extends Error {
  /** The name of the class. */
  override name = "TimeoutError";
}
