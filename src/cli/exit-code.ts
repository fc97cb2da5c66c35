import { constants } from "node:os";

/** The exit codes of holdfast itself; a command that ran has its own. */
export const ExitCode = {
  ok: 0,
  /** The lock was not free (in time); `-E` chooses another. */
  notAcquired: 1,
  /** `list --deadlocks` found one. */
  deadlock: 1,
  /** `doctor` found a danger, or with `--strict` a warning. */
  unfit: 1,
  usage: 64,
  storeUnreachable: 69,
  internal: 70,
  cannotWrite: 74,
  leaseLost: 79,
  cannotRun: 126,
  notFound: 127,
} as const;

/** The exit code by which a shell says that a signal ended a command. */
export function codeOfSignal(signal: NodeJS.Signals): number {
  return 128 + (constants.signals[signal] ?? 0);
}

/** A signal ends the verb: it came before there was a child to pass it on to. */
export class Interrupted extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`Ended by ${signal}.`);
    this.name = "Interrupted";
    this.signal = signal;
  }

  /** By name: the demo, which is not bundled, brings a second copy of this class. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && value.name === "Interrupted";
  }
}
