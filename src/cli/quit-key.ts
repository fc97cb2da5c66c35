import { ownForeground } from "./terminal.js";

/** Keys that a terminal turns into signals itself, unless its keys are read one by one. */
const SIGNAL_KEYS: ReadonlyMap<string, NodeJS.Signals> = new Map([
  ["\x03", "SIGINT"],
  ["\x1c", "SIGQUIT"],
]);

const SUSPEND = "\x1a";

/**
 * Hears the key `q` on the terminal of stdin. Keys are read one by one until it is disposed of.
 * Where the process ends in another way, Node restores the terminal.
 */
export class QuitKey implements Disposable {
  readonly #controller = new AbortController();
  readonly #isListening: boolean;
  readonly #onContinue = (): void => {
    if (ownForeground() !== null) process.stdin.setRawMode(true);
  };
  readonly #listener = (keys: Buffer): void => this.#on(keys.toString("latin1"));

  constructor() {
    // A process in the background would be stopped for changing the terminal.
    this.#isListening = process.stdin.isTTY === true && ownForeground() !== null;
    if (!this.#isListening) return;
    process.stdin.setRawMode(true);
    process.stdin.on("data", this.#listener);
    process.on("SIGCONT", this.#onContinue);
  }

  /** Whether there is a terminal to type at. */
  get isListening(): boolean {
    return this.#isListening;
  }

  get pressed(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    if (!this.#isListening) return;
    process.off("SIGCONT", this.#onContinue);
    process.stdin.off("data", this.#listener);
    process.stdin.pause();
    if (ownForeground() !== null) process.stdin.setRawMode(false);
  }

  #on(keys: string): void {
    for (const key of keys) {
      const signal = SIGNAL_KEYS.get(key);
      // To the whole group, as the terminal does it.
      if (signal) process.kill(0, signal);
      else if (key === SUSPEND) this.#suspend();
      else if (key === "q" || key === "Q") this.#controller.abort();
    }
  }

  /** Stops the process group, as the terminal does it. Other listeners would keep us running. */
  #suspend(): void {
    const listeners = process.listeners("SIGTSTP");
    process.stdin.setRawMode(false);
    process.removeAllListeners("SIGTSTP");
    process.kill(0, "SIGTSTP");
    // Here the process goes on, or it was not stopped because no shell could continue it.
    for (const listener of listeners) process.on("SIGTSTP", listener);
    this.#onContinue();
  }
}
