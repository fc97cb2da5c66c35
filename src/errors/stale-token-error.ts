import { HoldfastError } from "./holdfast-error.js";

/** A lease, or the name and the token of one: a fence lets it pass or refuses it. */
export interface Fenced {
  /** The name of the lock. */
  readonly name: string;
  /** The fencing token of the lease. */
  readonly token: bigint;
}

/** A fence has refused a write: a later holder of the lock was there before. */
export class StaleTokenError extends HoldfastError {
  /** The text that `instanceof` compares. */
  static override readonly brand: string = "StaleTokenError";
  /** The kind of the error, the same in all versions. */
  override readonly code = "HF_STALE_TOKEN";
  /** The token that was refused. */
  readonly token: bigint;
  /** The highest token that the fence has seen; null where it does not tell. */
  readonly highest: bigint | null;

  constructor({ name, token }: Fenced, highest: bigint | null = null, cause?: unknown) {
    const later = highest === null ? "a later holder" : `a holder with token ${highest}`;
    super(
      `The write under lock "${name}" with token ${token} is refused: ${later} has written. ` +
        "Nothing was written; begin again under a new lease, if the work is still wanted.",
      { lockName: name, ...(cause !== undefined && { cause }) },
    );
    this.token = token;
    this.highest = highest;
  }
}
