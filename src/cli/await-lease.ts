import { hostname } from "node:os";
import { isatty } from "node:tty";
import type { Holdfast } from "../api/holdfast.js";
import type { LockView } from "../contract/store.js";
import { AcquireTimeoutError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import type { Space } from "../rules/name.js";
import { formatDuration } from "./duration.js";
import { heldBy, placeOf } from "./holder-text.js";
import { showStatus } from "./output.js";
import type { Report } from "./report.js";

/** The lock that is waited for, and the report that shows it. */
interface LockWait {
  readonly locks: Holdfast;
  readonly space: Space;
  readonly name: string;
  readonly report: Report;
}

/** A shorter wait is not shown: nobody could read it in time. */
const FIRST_LOOK_MS = 300;

/**
 * Waits for `acquiring`, and shows who holds the lock in the meantime. Null after a timeout, which
 * the report has explained.
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
  let display: WaitDisplay | null = null;
  const timer = setTimeout(() => {
    display = new WaitDisplay(wait);
  }, FIRST_LOOK_MS);
  return () => {
    clearTimeout(timer);
    display?.end();
  };
}

async function tellConflict(wait: LockWait, error: AcquireTimeoutError): Promise<void> {
  const { locks, space, name, report } = wait;
  const view = error.holder ? null : await locks.inspect(name, space).catch(() => null);
  const holder = error.holder ?? view?.holders[0] ?? null;
  report.event("conflict", { name, holder });
  const waited = error.waitMs > 0 ? ` after ${formatDuration(error.waitMs)}` : "";
  report.note(
    `${name}: not acquired${waited}: ${holder ? heldBy(holder) : "other waiters were first"}.`,
  );
}

const LOOK_MS = 1_000;

/** One line on the terminal, redrawn while we wait; elsewhere one line in the log, with -v. */
class WaitDisplay {
  readonly #wait: LockWait;
  readonly #isLive: boolean;
  readonly #host = hostname();
  #timer: NodeJS.Timeout | undefined;
  #isShown = false;
  #isTold = false;

  constructor(wait: LockWait) {
    this.#wait = wait;
    const { report } = wait;
    this.#isLive = report.hasPeople && !report.isQuiet && isatty(2);
    report.status = { clear: () => this.#clear() };
    void this.#look();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#clear();
    this.#wait.report.status = null;
  }

  async #look(): Promise<void> {
    const { locks, space, name, report } = this.#wait;
    const view = await locks.inspect(name, space).catch(() => null);
    if (report.status === null) return;
    if (view) this.#tell(view);
    this.#timer = setTimeout(() => void this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  #tell(view: LockView): void {
    const { name, report } = this.#wait;
    const place = placeOf(view, this.#host, process.pid);
    const [holder] = view.holders;
    const text = holder ? heldBy(holder) : "free, but other waiters are first";
    const queue = place === null ? "" : `, place ${place} of ${view.waiters.length}`;
    if (!this.#isTold) {
      this.#isTold = true;
      report.event("waiting", { name, holder, place, waiters: view.waiters.length });
      if (!this.#isLive) report.detail(`${name}: waiting${queue}: ${text}`);
    }
    if (this.#isLive) this.#draw(`holdfast: ${name}: waiting${queue}: ${text}`);
  }

  #draw(text: string): void {
    showStatus(text);
    this.#isShown = true;
  }

  #clear(): void {
    if (this.#isShown) showStatus("");
    this.#isShown = false;
  }
}
