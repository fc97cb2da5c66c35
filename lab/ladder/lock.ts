/** The programs of the ladder return this when they have the lock. */
export interface Lock {
  unlock(): Promise<unknown>;
  /** Absent where the program believes until it calls `unlock`. */
  isHeld?(): boolean;
}
