import { LeaseLostError } from "../errors/index.js";

/** The part of a lease, or of several together, that `run` uses. */
export interface Releasable {
  /** Why the work may not count, if so. */
  readonly loss: LeaseLostError | undefined;
  /** Gives it back, unless it was detached. Never throws. */
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
    await lease.release();
    const { loss } = lease;
    if (!loss || error === loss) throw error;
    throw lossAfter(loss, { cause: error });
  }
  // Asked after the release: it compares the clock first, and the store may say that it was gone
  // before, so that another holder may have worked at the same time.
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
