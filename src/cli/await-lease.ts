import type { Holdfast } from "../api/holdfast.js";
import { AcquireTimeoutError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import type { Space } from "../rules/name.js";
import { formatDuration } from "./duration.js";
import type { Report } from "./report.js";

/** The lock that is waited for, and the report that shows it. */
export interface LockWait {
  readonly locks: Holdfast;
  readonly space: Space;
  readonly name: string;
  readonly report: Report;
}

/** A shorter wait is not shown: it is over before it can be read. */
const FIRST_LOOK_MS = 300;

/**
 * Waits for `acquiring`, and shows the holder in the way meanwhile. Null when time ran out: then
 * the report has named the holder. Modules that only a wait or a conflict needs are loaded only
 * then.
 */
export async function awaitLease(wait: LockWait, acquiring: Promise<Lease>): Promise<Lease | null> {
  const startMs = performance.now();
  const { name, report } = wait;
  const endDisplay = displayLater(wait);
  try {
    const lease = await acquiring;
    const waitedMs = performance.now() - startMs;
    endDisplay();
    report.event("acquired", { name, token: lease.token, waitedMs: Math.round(waitedMs) });
    report.detail(`${name}: acquired after ${formatDuration(waitedMs)}, token ${lease.token}`);
    return lease;
  } catch (error) {
    if (!(error instanceof AcquireTimeoutError)) throw error;
    endDisplay();
    await tellConflict(wait, error);
    return null;
  } finally {
    endDisplay();
  }
}

/** Shows the wait after a moment. Returns how to end it, shown or not. */
function displayLater(wait: LockWait): () => void {
  let isOver = false;
  let end = (): void => {};
  const timer = setTimeout(async () => {
    const { WaitDisplay } = await import("./wait-display.js");
    if (isOver) return;
    const display = new WaitDisplay(wait);
    end = () => display.end();
  }, FIRST_LOOK_MS);
  return () => {
    isOver = true;
    clearTimeout(timer);
    end();
  };
}

async function tellConflict(wait: LockWait, error: AcquireTimeoutError): Promise<void> {
  const { locks, space, name, report } = wait;
  const { heldBy } = await import("./holder-text.js");
  const view = error.holder ? null : await locks.inspect(name, space).catch(() => null);
  const holder = error.holder ?? view?.holders[0] ?? null;
  report.event("conflict", { name, holder });
  const waited = error.waitMs > 0 ? ` after ${formatDuration(error.waitMs)}` : "";
  report.note(
    `${name}: not acquired${waited}: ${holder ? heldBy(holder) : "other waiters were first"}.`,
  );
}
