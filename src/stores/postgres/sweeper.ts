import type { Runtime } from "../../time/runtime.js";
import { type Timer, within } from "../../time/timers.js";
import type { Session } from "./session.js";

/** All clients together sweep once in ten minutes; a client asks whether it is time more often. */
const EVERY_MS = 60_000;
/** Between two slices, and before another look whether the connection is free. */
const PAUSE_MS = 50;
/** How long `close` may wait for a slice. */
const CLOSE_LIMIT_MS = 1_000;
/**
 * Of so many clients that close, one does a slice: clients that live only for a moment, such as
 * those of the command, would otherwise never do one.
 */
const ONE_IN = 8;
/** A slice of so many rows takes the server about 2 ms. */
const SLICE = { text: "select holdfast.sweep_3(200)" };

type SweptSession = Pick<Session, "isIdle" | "send">;

/**
 * Lets the database remove rows that nobody uses. It does so only while the client works, and only
 * when the connection has nothing else to do: a command waits for one slice at most.
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

  /** The client works. */
  onWork(): void {
    this.#isUsed = true;
    if (this.#timer) return;
    // Spread, so that clients that were started together do not ask together.
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
    // A slice that fails is done by a later one, of this client or of another.
    const isMore = await this.#slice().catch(() => false);
    if (isMore) return this.#startIn(PAUSE_MS);
    this.#timer = null;
  }

  async #slice(): Promise<boolean> {
    return (await this.#session()?.send(SLICE)) === "t";
  }
}
