import { setTimeout } from "node:timers/promises";
import { Interrupted } from "./exit-code.js";

const ENDINGS: readonly NodeJS.Signals[] = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"];

/** Signals that are sent to a program on purpose and that can be caught. */
const OTHERS: readonly NodeJS.Signals[] = [
  "SIGUSR1",
  "SIGUSR2",
  "SIGALRM",
  "SIGCONT",
  "SIGTSTP",
  "SIGWINCH",
];

/**
 * The signals sent to this process. Before the command is started, the first signal that means
 * "end" cancels the wait, and no command is started. Afterwards all signals go to the command.
 */
export class Signals implements Disposable {
  readonly #controller = new AbortController();
  readonly #listener = (signal: NodeJS.Signals): void => this.#on(signal);
  #receiver: ((signal: NodeJS.Signals) => void) | null = null;

  constructor() {
    for (const signal of [...ENDINGS, ...OTHERS]) process.on(signal, this.#listener);
  }

  /** Aborts with `Interrupted`. */
  get interrupted(): AbortSignal {
    return this.#controller.signal;
  }

  /** From now on every signal goes to `receiver`; null: back to cancelling. */
  passTo(receiver: ((signal: NodeJS.Signals) => void) | null): void {
    this.#receiver = receiver;
  }

  /** The exit code is known: a signal that comes now does not change it. */
  [Symbol.dispose](): void {
    this.#receiver = () => {};
  }

  #on(signal: NodeJS.Signals): void {
    if (this.#receiver) this.#receiver(signal);
    else if (ENDINGS.includes(signal)) this.#controller.abort(new Interrupted(signal));
  }
}

/** A timer that is set for longer fires at once. */
const MAX_MS = 2 ** 31 - 1;

/** Waits for `delayMs`, 24 days at most, or until the signal aborts; leaves no listener behind. */
export async function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  const options = signal ? { signal } : {};
  await setTimeout(Math.min(delayMs, MAX_MS), undefined, options).catch(() => {});
}
