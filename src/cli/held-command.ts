/**
 * Runs a command for as long as a lease holds, and no longer.
 *
 * When the lease cannot be renewed, its signal aborts `graceMs` before the deadline: TERM to the
 * whole group. Shortly before the deadline KILL ends what is left, so that all of it is gone before
 * the store may grant the lock to another. A lease taken away (revoked) is another's already: the
 * command still gets its grace, since whoever revoked it chose that moment.
 *
 * A signal to this process that means "end" goes to the whole group and starts the same grace: a
 * command that ignores the signal gets KILL when the grace is over.
 */
import type { LeaseLostError } from "../errors.js";
import type { Lease } from "../lease/lease.js";
import { Child } from "./child.js";
import type { Interruption } from "./command.js";
import { formatDuration } from "./duration.js";
import { codeOfSignal, ExitCode, type Interrupted } from "./exit-code.js";
import { Guard } from "./guard.js";
import type { CommandLine } from "./launcher.js";
import type { Report } from "./report.js";
import type { Signals } from "./signals.js";

export interface CommandEnd {
  readonly exitCode: number;
  /** Why it was made to end before its time; null when it ended by itself. */
  readonly loss: LeaseLostError | null;
  /** Who has to hear of the interrupt that ended it; null when none did. */
  readonly interrupt: Interruption["interrupt"] | null;
}

export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly graceMs: number;
  readonly signals: Signals;
  readonly report: Report;
}

/** KILL comes this long before the deadline: time for the kernel to do it. */
const KILL_LEAD_MS = 150;
const SHORTEST_LOOK_MS = 250;

/** The least grace a lease needs, so that KILL can come before its deadline. */
export function leastGraceMs(ttlMs: number): number {
  return Math.min(KILL_LEAD_MS, ttlMs / 4);
}

export async function runWhileHeld(
  lease: Lease,
  line: CommandLine,
  { env, graceMs, signals, report }: Surroundings,
): Promise<CommandEnd> {
  // Nothing is started after a TERM, nor on a lease that is over.
  signals.interrupted.throwIfAborted();
  lease.assertHeld();
  const guard = new Guard(graceMs);
  const stopFeeding = feed(guard, lease);
  try {
    const child = await Child.start(line, env, guard);
    return await supervise(child, lease, guard, { graceMs, signals, report });
  } finally {
    stopFeeding();
    guard.done();
  }
}

async function supervise(
  child: Child,
  lease: Lease,
  guard: Guard,
  { graceMs, signals, report }: Omit<Surroundings, "env">,
): Promise<CommandEnd> {
  const told = new Set<NodeJS.Signals>();
  let ending: Promise<void> | null = null;
  // The first signal that means "end" starts the grace; a repeated one does not prolong it.
  const end = (signal: NodeJS.Signals): void => {
    told.add(signal);
    child.end(signal);
    ending ??= child.endBy(graceEnd(lease, graceMs));
  };
  const pass = (signal: NodeJS.Signals): void => {
    report.detail(`${lease.name}: passing ${signal} on`);
    if (ENDINGS.has(signal)) end(signal);
    else child.signal(signal);
  };
  signals.passTo(pass);
  // What came between the last look and now must not be lost.
  if (signals.interrupted.aborted) pass((signals.interrupted.reason as Interrupted).signal);

  const losing = new Promise<true>((resolve) => {
    const onLoss = (): void =>
      void windDown(child, lease, guard, graceMs, report).then(() => resolve(true));
    if (lease.signal.aborted) onLoss();
    else lease.signal.addEventListener("abort", onLoss, { once: true });
  });
  const { code, killedBy } = await child.ended;
  const isLost = lease.signal.aborted;
  // Who is killed on the way to the command, is so by what was typed for all of us: the word to
  // ourselves may come later.
  const early = code === ExitCode.cannotRun ? guard.killedBy : child.hasBegun ? null : killedBy;
  if (early) told.add(early);
  // Its launching shell was killed, which says nothing about the command: that may still run.
  else if (killedBy && child.hadTerminal && !isLost) end("SIGTERM");
  // What was told to end may need a moment longer than the command itself; the lock stays until
  // then.
  if (isLost) await losing;
  else if (ending) await ending;
  else if (child.isThere) report.detail(`${lease.name}: the command left processes behind`);
  signals.passTo(null);
  const exitCode = early ? codeOfSignal(early) : code;
  return {
    exitCode,
    loss: isLost ? (lease.signal.reason as LeaseLostError) : null,
    interrupt: exitCode === codeOfSignal("SIGINT") ? interruptOf(child, told) : null,
  };
}

/** What was typed came to us and our group, or to the command alone, which had the terminal. */
function interruptOf(child: Child, told: ReadonlySet<string>): CommandEnd["interrupt"] {
  if (told.has("SIGINT")) return "us";
  return child.hadTerminal && told.size === 0 ? "our group" : null;
}

/** Not SIGHUP: to many programs it means "read your settings again". */
const ENDINGS: ReadonlySet<string> = new Set(["SIGINT", "SIGQUIT", "SIGTERM"]);

/**
 * Tells the guard, at once and at every renewal, how long the lease holds. Returns how to stop.
 */
function feed(guard: Guard, lease: Lease): () => void {
  let toldMs = 0;
  let timer: NodeJS.Timeout;
  const tell = (): void => {
    const remainingMs = lease.remainingMs();
    const untilMs = performance.now() + remainingMs;
    if (untilMs > toldMs + 1 && !lease.signal.aborted) guard.alive(remainingMs);
    toldMs = untilMs;
    timer = setTimeout(tell, Math.max(SHORTEST_LOOK_MS, remainingMs / 8));
  };
  tell();
  return () => clearTimeout(timer);
}

/** From TERM to the end of the whole group, within what is left of the lease. */
async function windDown(
  child: Child,
  lease: Lease,
  guard: Guard,
  graceMs: number,
  report: Report,
): Promise<void> {
  const endMs = graceEnd(lease, graceMs);
  const leftMs = Math.max(0, endMs - performance.now());
  guard.ending(leftMs);
  const { reason, message } = lease.signal.reason as LeaseLostError;
  report.event("lost", { name: lease.name, token: lease.token, reason });
  report.note(
    leftMs > 0
      ? `${message} The command got SIGTERM; SIGKILL follows in ${formatDuration(leftMs)}.`
      : `${message} The command gets SIGKILL.`,
  );
  if (leftMs > 0) child.end("SIGTERM");
  await child.endBy(endMs);
}

/** When a grace that begins now is over: by its length, and before the deadline of the lease. */
function graceEnd(lease: Lease, graceMs: number): number {
  const leftMs = lease.state === "held" ? Math.min(graceMs, lease.remainingMs()) : graceMs;
  return performance.now() + leftMs - Math.min(KILL_LEAD_MS, graceMs / 2);
}
