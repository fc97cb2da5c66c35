import { hostname } from "node:os";
import { isatty } from "node:tty";
import type { LockView } from "../store.js";
import { heldBy, placeOf } from "./holder-text.js";
import { showStatus } from "./output.js";
import type { Awaited } from "./waiting.js";

const LOOK_MS = 1_000;

/** One line on the terminal, redrawn while we wait; elsewhere one line in the log, with -v. */
export class WaitDisplay {
  readonly #awaited: Awaited;
  readonly #isLive: boolean;
  readonly #host = hostname();
  #timer: NodeJS.Timeout | undefined;
  #isShown = false;
  #isTold = false;

  constructor(awaited: Awaited) {
    this.#awaited = awaited;
    const { report } = awaited;
    this.#isLive = report.hasPeople && !report.isQuiet && isatty(2);
    report.status = { clear: () => this.#clear() };
    void this.#look();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#clear();
    this.#awaited.report.status = null;
  }

  async #look(): Promise<void> {
    const { locks, space, name, report } = this.#awaited;
    const view = await locks.inspect(name, space).catch(() => null);
    if (report.status === null) return;
    if (view) this.#tell(view);
    this.#timer = setTimeout(() => void this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  #tell(view: LockView): void {
    const { name, report } = this.#awaited;
    const place = placeOf(view, this.#host, process.pid);
    const [holder] = view.holders;
    const text = holder ? heldBy(holder) : "nobody holds it, others were first";
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
