import type { LockView } from "../../contract/store.js";
import { print } from "../output.js";
import type { WorkerProcess } from "./workers.js";

/** The figures that one picture shows. */
export interface Snapshot {
  readonly workers: readonly WorkerProcess[];
  readonly view: LockView | null;
  readonly counter: number;
  readonly writes: number;
}

const EVENTS_SHOWN = 9;
const LOG_MS = 1_000;

/** A live picture on a terminal, plain lines elsewhere. */
export class Screen {
  readonly #isLive = process.stdout.isTTY === true;
  readonly #startMs = performance.now();
  readonly #events: string[] = [];
  #height = 0;
  #loggedMs = 0;
  #failure: unknown = null;

  say(text: string): void {
    const seconds = ((performance.now() - this.#startMs) / 1_000).toFixed(1).padStart(4);
    const line = `${seconds} s  ${text}`;
    if (!this.#isLive) this.#print([line]);
    this.#events.push(line);
  }

  /** Throws when nothing can be shown any more. */
  draw(snapshot: Snapshot): void {
    if (this.#failure) throw this.#failure;
    const { workers, view, counter, writes } = snapshot;
    if (!this.#isLive) return this.#log(snapshot);
    const [holder] = view?.holders ?? [];
    const states = workers.map(({ label, state }) => `${label} ${state}`).join("   ");
    const lines = [
      `lock     ${view?.name ?? ""}`,
      `holder   ${holder ? `pid ${holder.meta.pid}, token ${holder.token}` : "-"}`,
      `queue    ${"#".repeat(view?.waiters.length ?? 0) || "-"}`,
      `counter  ${counter} after ${writes} increments`,
      `workers  ${states}`,
      "",
      ...this.#events.slice(-EVENTS_SHOWN),
    ];
    const width = process.stdout.columns || 80;
    this.#print(lines.map((line) => line.slice(0, width - 1)));
    this.#height = lines.length;
  }

  /** The picture in one line, once a second. */
  #log({ workers, view, counter }: Snapshot): void {
    const nowMs = performance.now();
    if (!view || nowMs - this.#loggedMs < LOG_MS) return;
    this.#loggedMs = nowMs;
    const [holder] = view.holders;
    const { label = "?" } = workers.find(({ process: { pid } }) => pid === holder?.meta.pid) ?? {};
    const who = holder ? `held by ${label}, token ${holder.token}` : "free";
    this.say(`        ${who}, ${view.waiters.length} waiting, counter ${counter}`);
  }

  /** Leaves every event and the text on the screen. */
  end(text: string): void {
    this.#print([...(this.#isLive ? this.#events : []), "", ...text.split("\n")]);
  }

  /** In the place of the last picture, if there is one. */
  #print(lines: readonly string[]): void {
    const clear = this.#height > 0 ? `\x1b[${this.#height}A\x1b[J` : "";
    this.#height = 0;
    print(lines, clear).catch((error: unknown) => {
      this.#failure ??= error;
    });
  }
}
