/**
 * Runs a command for as long as a lease holds, and no longer.
 *
 * When the lease cannot be renewed, its signal aborts `graceMs` before the deadline, and the whole
 * process group gets TERM. Shortly before the deadline KILL ends the rest of the group, so that all
 * of it is gone before the store may grant the lock to another process. A lease that is revoked
 * belongs to another process already: the command still gets its grace, since the revocation chose
 * that moment.
 *
 * A signal to this process that means "end" goes to the whole group and starts the same grace: a
 * command that ignores the signal gets KILL at the end of the grace period.
 */
import type { LeaseLostError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import { Child } from "./child.js";
import type { Interruption } from "./command.js";
import { formatDuration } from "./duration.js";
import { codeOfSignal, ExitCode, type Interrupted } from "./exit-code.js";
import type { CommandLine } from "./launcher.js";
import { Reaper } from "./reaper.js";
import type { Report } from "./report.js";
import type { Signals } from "./signals.js";

export interface CommandEnd {
  readonly exitCode: number;
  /** Why the command had to end before its time; null when it ended by itself. */
  readonly loss: LeaseLostError | null;
  /** Where the interrupt that ended the command has to be sent on to; null when none did. */
  readonly interrupt: Interruption["interrupt"] | null;
}

/** KILL comes this long before the deadline: time for the kernel to do it. */
const KILL_LEAD_MS = 150;
const MIN_LOOK_MS = 250;
/** A timer of a month or more would fire at once. */
const MAX_LOOK_MS = 3_600_000;

/** Not SIGHUP: to many programs it means "read your settings again". */
const ENDINGS: ReadonlySet<string> = new Set(["SIGINT", "SIGQUIT", "SIGTERM"]);

/** The least grace a lease needs, so that KILL can come before its deadline. */
export function leastGraceMs(ttlMs: number): number {
  return Math.min(KILL_LEAD_MS, ttlMs / 4);
}

export class HeldCommand {
  readonly #lease: Lease;
  readonly #graceMs: number;
  readonly #signals: Signals;
  readonly #report: Report;

  constructor(lease: Lease, graceMs: number, signals: Signals, report: Report) {
    this.#lease = lease;
    this.#graceMs = graceMs;
    this.#signals = signals;
    this.#report = report;
  }

  async run(line: CommandLine, env: NodeJS.ProcessEnv): Promise<CommandEnd> {
    // No command is started after a TERM, or when the lease has ended.
    this.#signals.interrupted.throwIfAborted();
    this.#lease.assertHeld();
    const reaper = new Reaper(this.#graceMs);
    const stopFeeding = this.#feed(reaper);
    try {
      return await this.#supervise(await Child.start(line, env, reaper), reaper);
    } finally {
      stopFeeding();
      reaper.done();
    }
  }

  async #supervise(child: Child, reaper: Reaper): Promise<CommandEnd> {
    const lease = this.#lease;
    const signals = this.#signals;
    const sent = new Set<NodeJS.Signals>();
    let ending: Promise<void> | null = null;
    // The first signal that means "end" starts the grace; a repeated one does not prolong it.
    const end = (signal: NodeJS.Signals): void => {
      sent.add(signal);
      child.end(signal);
      ending ??= child.endBy(this.#graceEnd());
    };
    const pass = (signal: NodeJS.Signals): void => {
      this.#report.detail(`${lease.name}: passing ${signal} on`);
      if (ENDINGS.has(signal)) end(signal);
      else child.signal(signal);
    };
    signals.passTo(pass);
    // A signal that came between the start of the command and this line must not be lost.
    if (signals.interrupted.aborted) pass((signals.interrupted.reason as Interrupted).signal);

    const losing = new Promise<true>((resolve) => {
      const onLoss = (): void => void this.#windDown(child, reaper).then(() => resolve(true));
      if (lease.signal.aborted) onLoss();
      else lease.signal.addEventListener("abort", onLoss, { once: true });
    });
    const { code, killedBy } = await child.ended;
    const isLost = lease.signal.aborted;
    // A shell that was killed on the way to the command was killed by a key that was typed for all
    // processes of the terminal: the same signal may reach this process later.
    const early = code === ExitCode.cannotRun ? reaper.killedBy : child.hasBegun ? null : killedBy;
    if (early) sent.add(early);
    // The launching shell was killed. The command itself may still run.
    else if (killedBy && child.hadTerminal && !isLost) end("SIGTERM");
    // Other processes of the group may need a moment longer than the command; the lock is held
    // until then.
    if (isLost) await losing;
    else if (ending) await ending;
    else if (child.isThere) this.#report.detail(`${lease.name}: the command left processes behind`);
    signals.passTo(null);
    const exitCode = early ? codeOfSignal(early) : code;
    return {
      exitCode,
      loss: isLost ? (lease.signal.reason as LeaseLostError) : null,
      interrupt: exitCode === codeOfSignal("SIGINT") ? interruptOf(child, sent) : null,
    };
  }

  /**
   * Tells the reaper, at once and at every renewal, how long the lease holds. Returns how to stop.
   */
  #feed(reaper: Reaper): () => void {
    const lease = this.#lease;
    let toldMs = 0;
    let timer: NodeJS.Timeout;
    const tell = (): void => {
      const remainingMs = lease.remainingMs();
      const untilMs = performance.now() + remainingMs;
      if (untilMs > toldMs + 1 && !lease.signal.aborted) reaper.alive(remainingMs);
      toldMs = untilMs;
      const lookMs = Math.max(MIN_LOOK_MS, Math.min(remainingMs / 8, MAX_LOOK_MS));
      timer = setTimeout(tell, lookMs);
    };
    tell();
    return () => clearTimeout(timer);
  }

  /** From TERM to the end of the whole group, within the rest of the lease. */
  async #windDown(child: Child, reaper: Reaper): Promise<void> {
    const { name, token, signal } = this.#lease;
    const endMs = this.#graceEnd();
    const leftMs = Math.max(0, endMs - performance.now());
    reaper.ending(leftMs);
    const { reason, message } = signal.reason as LeaseLostError;
    this.#report.event("lost", { name, token, reason });
    this.#report.note(
      leftMs > 0
        ? `${message} The command got SIGTERM; SIGKILL follows in ${formatDuration(leftMs)}.`
        : `${message} The command gets SIGKILL.`,
    );
    if (leftMs > 0) child.end("SIGTERM");
    await child.endBy(endMs);
  }

  /** The end of a grace period that starts now: before the deadline of the lease. */
  #graceEnd(): number {
    const lease = this.#lease;
    const graceMs = this.#graceMs;
    const leftMs = lease.state === "held" ? Math.min(graceMs, lease.remainingMs()) : graceMs;
    return performance.now() + leftMs - Math.min(KILL_LEAD_MS, graceMs / 2);
  }
}

/** The interrupt reached this process and its group, or only the command that had the terminal. */
function interruptOf(child: Child, sent: ReadonlySet<string>): CommandEnd["interrupt"] {
  if (sent.has("SIGINT")) return "us";
  return child.hadTerminal && sent.size === 0 ? "our group" : null;
}
