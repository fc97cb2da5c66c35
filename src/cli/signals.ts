import { Interrupted } from "./exit-code.js";

const ENDINGS: readonly NodeJS.Signals[] = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"];

/** All that a program may be sent on purpose and that can be caught. */
const OTHERS: readonly NodeJS.Signals[] = [
  "SIGUSR1",
  "SIGUSR2",
  "SIGALRM",
  "SIGCONT",
  "SIGTSTP",
  "SIGWINCH",
];

/**
 * The signals sent to this process. As long as there is no child, the first that means "end"
 * cancels whatever is awaited, and nothing is started after it. Then all of them are the child's.
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

  /** The outcome is known: a signal that comes now does not change the exit code. */
  [Symbol.dispose](): void {
    this.#receiver = () => {};
  }

  #on(signal: NodeJS.Signals): void {
    if (this.#receiver) this.#receiver(signal);
    else if (ENDINGS.includes(signal)) this.#controller.abort(new Interrupted(signal));
  }
}
