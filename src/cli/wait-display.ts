import { hostname } from "node:os";
import { isatty } from "node:tty";
import type { LockView } from "../contract/store.js";
import type { LockWait } from "./await-lease.js";
import { heldBy, placeOf } from "./holder-text.js";
import { showStatus } from "./output.js";

const LOOK_MS = 1_000;

/** One line on the terminal, redrawn while we wait; elsewhere one line in the log, with -v. */
export class WaitDisplay {
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
