import { LeaseLostError } from "../errors/index.js";

/** The part of a lease or lease set that `run` uses. */
export interface Releasable {
  /** The loss of the lease, if it was lost. */
  readonly loss: LeaseLostError | undefined;
  /** Releases the lease, unless it was detached. Never throws. */
  release(): Promise<boolean>;
}

/** Runs `body` and waits for it. If the lease was lost, throws the loss instead of its outcome. */
export async function runUnder<L extends Releasable, T>(
  lease: L,
  body: (lease: L) => T | Promise<T>,
): Promise<T> {
  let value: T;
  try {
    value = await body(lease);
  } catch (error) {
    await lease.release();
    const { loss } = lease;
    if (!loss || error === loss) throw error;
    throw lossAfter(loss, { cause: error });
  }
  // Check for a loss after the release, which notices a passed deadline, and whose answer may show
  // that the grant was gone before the body ended.
  await lease.release();
  const { loss } = lease;
  if (loss) throw lossAfter(loss, { value });
  return value;
}

function lossAfter(
  loss: LeaseLostError,
  end: { value: unknown } | { cause: unknown },
): LeaseLostError {
  const { reason, lockName, store, token, detail } = loss;
  const cause = "cause" in end ? { cause: end.cause } : {};
  const error = new LeaseLostError(reason, { lockName, store, token, detail, ...cause });
  if ("value" in end) error.value = end.value;
  return error;
}
