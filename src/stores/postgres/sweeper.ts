import type { Runtime } from "../../time/runtime.js";
import { type Timer, within } from "../../time/timers.js";
import type { Session } from "./session.js";

/** How often a client asks whether a sweep is due. The database sweeps once in ten minutes. */
const EVERY_MS = 60_000;
/** The pause between two slices, and before trying again when the connection is busy. */
const PAUSE_MS = 50;
/** How long `close` may wait for a slice. */
const CLOSE_LIMIT_MS = 1_000;
/**
 * One of this many clients runs a slice when it closes. Otherwise short-lived clients, such as
 * those of the command, would never sweep.
 */
const ONE_IN = 8;
/** A slice of 200 rows takes the server about 2 ms. */
const SLICE = { text: "select holdfast.sweep_3(200)" };

type SweptSession = Pick<Session, "isIdle" | "send">;

/**
 * Removes rows that nobody uses, in slices. It runs only while the client is in use and its
 * connection is idle, so a command waits for one slice at most.
 */
export class Sweeper {
  readonly #runtime: Runtime;
  readonly #session: () => SweptSession | null;
  #timer: Timer | null = null;
  #isUsed = false;
  #isClosed = false;

  /** `session`: the connection in use; null while there is none. */
  constructor(runtime: Runtime, session: () => SweptSession | null) {
    this.#runtime = runtime;
    this.#session = session;
  }

  /** Called for every command of the client. */
  onWork(): void {
    this.#isUsed = true;
    if (this.#timer) return;
    // The random delay keeps clients that started together from asking together.
    this.#startIn(EVERY_MS * (1 + this.#runtime.random.fraction()));
  }

  /** Resolves soon, whether or not the server answers. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    const isChosen = this.#isUsed && this.#runtime.random.fraction() < 1 / ONE_IN;
    if (isChosen) await within(this.#runtime.timers, CLOSE_LIMIT_MS, this.#slice()).catch(() => {});
  }

  #startIn(delayMs: number): void {
    if (this.#isClosed) return;
    this.#timer = this.#runtime.timers.after(delayMs, () => void this.#sweep());
  }

  async #sweep(): Promise<void> {
    const session = this.#session();
    if (session && !session.isIdle) return this.#startIn(PAUSE_MS);
    // A later slice, of this client or another one, does the work of a slice that failed.
    const isMore = await this.#slice().catch(() => false);
    if (isMore) return this.#startIn(PAUSE_MS);
    this.#timer = null;
  }

  async #slice(): Promise<boolean> {
    return (await this.#session()?.send(SLICE)) === "t";
  }
}
