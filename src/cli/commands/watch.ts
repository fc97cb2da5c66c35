import { UsageError } from "../arguments.js";
import type { Command } from "../command.js";
import { formatDuration } from "../duration.js";
import { ExitCode } from "../exit-code.js";
import { lockTable } from "../lock-table.js";
import { openCliStore } from "../open-cli-store.js";
import { print } from "../output.js";
import { toJson } from "../plain-text.js";
import { STORE_OPTIONS } from "../settings.js";
import { pause, Signals } from "../signals.js";
import { allViews, KIND_OPTIONS, spaceOf } from "../spaces.js";
import { ownForeground } from "../terminal.js";

const EVERY_MS = 1_000;
const MIN_EVERY_MS = 100;
const CLEAR_SCREEN = "\x1b[H\x1b[J";

export const watch: Command = {
  usage: ["[OPTIONS] [PREFIX]"],
  about:
    "Shows the locks in use whose names begin with PREFIX, again and again until it is " +
    "interrupted. On a terminal the table is redrawn, and the key q ends it; elsewhere it is " +
    "printed whenever holders or waiters change.",
  options: {
    every: { value: "TIME", help: "how often to look; default 1s" },
    json: { help: "every look as one JSON line on stdout" },
    ...KIND_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [["holdfast watch deploy:", "follow all deployments"]],

  async run(args) {
    const prefix = args.atMostOne("PREFIX") ?? "";
    const everyMs = args.durationMs("every") ?? EVERY_MS;
    if (everyMs < MIN_EVERY_MS) {
      throw new UsageError(`--every must be at least ${formatDuration(MIN_EVERY_MS)}.`);
    }
    const space = spaceOf(args);
    using signals = new Signals();
    await using locks = await openCliStore(args, signals.interrupted);
    const isLive = process.stdout.isTTY && !args.has("json");
    using key = isLive ? new QuitKey() : null;
    const ended = key ? AbortSignal.any([signals.interrupted, key.pressed]) : signals.interrupted;
    const hint = key?.isListening ? ["", "q: quit"] : [];
    let shown = "";
    while (!ended.aborted) {
      const views = await allViews(locks, prefix, space);
      if (args.has("json")) {
        await print([toJson({ at: new Date().toISOString(), locks: views })]);
      } else {
        const table = views.length > 0 ? lockTable(views) : ["no lock is in use"];
        const what = toJson(
          views.map(({ name, holders, waiters }) => [name, holders.map(tokenOf), waiters.length]),
        );
        if (isLive) await print([...table, ...hint], CLEAR_SCREEN);
        else if (what !== shown) await print([new Date().toISOString(), ...table, ""]);
        shown = what;
      }
      await pause(everyMs, ended);
    }
    return ExitCode.ok;
  },
};

function tokenOf({ token }: { token: bigint }): bigint {
  return token;
}

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
