import { setTimeout as pause } from "node:timers/promises";
import type { ControlledProcess } from "../test/faults/process.js";
import type { FaultKind, Happening } from "./history.js";
import { nowMs } from "./lateness.js";
import type { Notice, Order, Report, Setting } from "./orders.js";
import type { Processes } from "./processes.js";

/** How many times the ttl a release may take before the trial goes on without its answer. */
const MAX_RELEASE = 6;

/** The longest time for which a process that may serve again closes its connections. */
const MAX_CLOSE_MS = 2_000;

type Reported = Happening | Notice;

export interface Recorder {
  record(atMs: number, happening: Happening): void;
  /** The resource judges a write. */
  write(lane: string, atMs: number, token: string | undefined): void;
}

/** One process of a trial, as its script sees it. */
export class Actor implements AsyncDisposable {
  readonly lane: string;
  readonly pid: number;
  readonly #setting: Setting;
  readonly #processes: Processes;
  readonly #process: ControlledProcess;
  readonly #recorder: Recorder;
  readonly #seen: Reported[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #listening: Promise<void>;
  #isAlive = true;
  #hasEnded = false;
  #isAsking = false;
  #isBelieving = false;
  /** A release is not answered yet. */
  #isReleasing = false;
  /** The process said that it may serve another trial. */
  #isWhole = false;
  /** A fault stops or blocks the process: its timers are late on purpose. */
  #isHindered = false;
  #lateMs = 0;

  constructor(setting: Setting, recorder: Recorder, processes: Processes) {
    this.lane = setting.lane;
    this.#setting = setting;
    this.#recorder = recorder;
    this.#processes = processes;
    this.#process = processes.take();
    this.pid = this.#process.pid;
    this.#listening = this.#listen();
  }

  get isAsking(): boolean {
    return this.#isAlive && this.#isAsking;
  }

  get isBelieving(): boolean {
    return this.#isAlive && this.#isBelieving;
  }

  /** How late the timers of the process were, unless a fault delayed them. */
  get lateMs(): number {
    return this.#isHindered ? 0 : this.#lateMs;
  }

  /** Throws if the process ended though no fault killed it: its silence is no verdict. */
  assertAlive(): void {
    if (!this.#isAlive || !this.#hasEnded) return;
    throw new Error(`process ${this.lane} ended by itself:\n${this.#process.logTail()}`);
  }

  async ready(): Promise<void> {
    await this.#order({ order: "open", setting: this.#setting });
    if (await this.#until(["ready"], 20_000)) return;
    throw new Error(`process ${this.lane} does not start:\n${this.#process.logTail()}`);
  }

  /** Resolves when the process has asked, not when it has the lock. */
  async asks(): Promise<void> {
    await this.#order({ order: "acquire" });
    await this.#until(["asks"], 5_000);
  }

  /** Resolves with true when the process works, with false when it does not within the time. */
  async worksWithin(withinMs: number): Promise<boolean> {
    await this.#when(() => !this.#isAsking, withinMs);
    return this.#isBelieving;
  }

  /** Asks, and asks again when it is refused, until it works or the time is over. */
  async insists(withinMs: number): Promise<boolean> {
    const endMs = nowMs() + withinMs;
    while (!this.#isBelieving && nowMs() < endMs) {
      if (!this.#isAsking) await this.asks();
      await this.worksWithin(endMs - nowMs());
    }
    return this.#isBelieving;
  }

  /** Ends its work and releases, if it believes. */
  async finishes(): Promise<void> {
    if (!this.#isAlive) return;
    await this.startsRelease();
    await this.released();
  }

  /** Resolves when release is called, or the process has found out that it is too late for it. */
  async startsRelease(): Promise<void> {
    const isBelieving = this.#isBelieving;
    this.#isReleasing = true;
    await this.#order({ order: "finish" });
    if (isBelieving) await this.#until(["releases", "disbelieves"], this.#longestReleaseMs);
  }

  async released(): Promise<void> {
    await this.#until(["released"], this.#longestReleaseMs);
  }

  /** Works on for so long without a turn of its event loop. Resolves when that has begun. */
  async blocks(forMs: number): Promise<void> {
    this.#isHindered = true;
    await this.#order({ order: "block", forMs });
  }

  async disbelievesWithin(withinMs: number): Promise<boolean> {
    return !this.#isBelieving || (await this.#until(["disbelieves"], withinMs));
  }

  /** Resolves when the process has checked for the last time before its write. */
  async checks(): Promise<void> {
    await this.#order({ order: "check" });
    await this.#until(["checked"], 5_000);
  }

  async writes(): Promise<void> {
    if (!this.#isBelieving) return;
    await this.#order({ order: "write" });
    await this.#until(["writing"], 5_000);
  }

  async isKilled(): Promise<void> {
    this.happens("killed", "kill -9");
    await this.#process.kill();
    this.#isAlive = false;
  }

  async isStopped(): Promise<void> {
    this.#isHindered = true;
    this.happens("stopped", "SIGSTOP");
    await this.#process.pause();
  }

  continues(): void {
    this.happens("continued", "SIGCONT");
    this.#process.resume();
  }

  /** Records a fault that hits this process, before it does: no effect comes before its cause. */
  happens(what: FaultKind, text: string): void {
    this.#recorder.record(nowMs(), { type: "fault", lane: this.lane, what, text });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (await this.#closes()) return this.#processes.giveBack(this.#process);
    this.#isAlive = false;
    await this.#process.kill();
    await this.#listening;
    await this.#process[Symbol.asyncDispose]();
  }

  get #longestReleaseMs(): number {
    return MAX_RELEASE * this.#setting.ttlMs;
  }

  /** Resolves with true when the process is as it was before the trial. */
  async #closes(): Promise<boolean> {
    const isBusy = this.#isAsking || this.#isBelieving || this.#isReleasing;
    if (!this.#isAlive || this.#hasEnded || this.#isHindered || isBusy) return false;
    await this.#order({ order: "close" }).catch(() => undefined);
    return (await this.#until(["closed"], MAX_CLOSE_MS)) && this.#isWhole;
  }

  async #order(order: Order): Promise<void> {
    if (this.#isAlive) await this.#process.send(order);
  }

  /** Resolves with true at the next report of these types that no call has waited for. */
  #until(types: readonly Reported["type"][], withinMs: number): Promise<boolean> {
    return this.#when(() => {
      const at = this.#seen.findIndex(({ type }) => types.includes(type));
      if (at !== -1) this.#seen.splice(at, 1);
      return at !== -1;
    }, withinMs);
  }

  /** Looks at each report. Resolves with false when the time is over. */
  async #when(isSo: () => boolean, withinMs: number): Promise<boolean> {
    const end = new AbortController();
    const report = new Promise<boolean>((resolve) => {
      const look = (): void => {
        if (!end.signal.aborted && isSo()) resolve(true);
      };
      this.#listeners.add(look);
      end.signal.addEventListener("abort", () => this.#listeners.delete(look));
      look();
    });
    const late = pause(withinMs, false, { signal: end.signal }).catch(() => false);
    try {
      return await Promise.race([report, late]);
    } finally {
      end.abort();
    }
  }

  async #listen(): Promise<void> {
    for (;;) {
      const report = await this.#process.receive<Report>().catch(() => null);
      if (!report) {
        this.#hasEnded = true;
        return;
      }
      this.#take(report);
      for (const look of [...this.#listeners]) look();
      // The next report belongs to the next trial.
      if (report.type === "closed") return;
    }
  }

  #take({ atMs, ...reported }: Report): void {
    this.#seen.push(reported);
    switch (reported.type) {
      case "ready":
      case "checked":
        return;
      case "closed":
        this.#isWhole = reported.isWhole;
        return;
      case "released":
        this.#isReleasing = false;
        return;
      case "late":
        this.#lateMs = reported.byMs;
        return;
      case "writing":
        return this.#recorder.write(this.lane, atMs, reported.token);
      case "asks":
        this.#isAsking = true;
        break;
      case "believes":
        this.#isAsking = false;
        this.#isBelieving = true;
        break;
      case "refused":
        this.#isAsking = false;
        break;
      case "releases":
      case "disbelieves":
        this.#isBelieving = false;
        break;
    }
    this.#recorder.record(atMs, reported);
  }
}
