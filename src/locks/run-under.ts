import { LeaseLostError } from "../errors.js";

/** What `run` needs of a lease, single or several. */
export interface Releasable {
  /** The loss, by the clock of this moment. */
  readonly loss: LeaseLostError | undefined;
  release(): Promise<boolean>;
}

/** Runs `body`, always waits for it, and tells a loss rather than what came out of it. */
export async function runUnder<L extends Releasable, T>(
  lease: L,
  body: (lease: L) => T | Promise<T>,
): Promise<T> {
  let value: T;
  try {
    value = await body(lease);
  } catch (error) {
    const { loss } = lease;
    await lease.release();
    if (!loss || error === loss) throw error;
    throw lossAfter(loss, { cause: error });
  }
  const { loss } = lease;
  const wasHeld = await lease.release();
  if (loss) throw lossAfter(loss, { value });
  // The store says that it was gone before: somebody else may have worked at the same time.
  if (!wasHeld) throw lossAfter(lease.loss ?? new LeaseLostError("missing", {}), { value });
  return value;
}

function lossAfter(
  { reason, lockName, store, token }: LeaseLostError,
  end: { value: unknown } | { cause: unknown },
): LeaseLostError {
  const context =
    "cause" in end ? { lockName, store, token, cause: end.cause } : { lockName, store, token };
  const error = new LeaseLostError(reason, context);
  if ("value" in end) error.value = end.value;
  return error;
}
