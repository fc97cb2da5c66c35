import type { Socket } from "node:net";
import { tcpReset } from "./tcp-reset.js";

/** What happens to one chunk (with framing: one message) that reached the proxy. */
export type Verdict =
  | "pass"
  /** Lost, with all that follows in this direction: TCP loses no message from the middle. */
  | "drop"
  /** Kept back, with all that follows in this direction, until `release`. */
  | "hold"
  /** Lost, and the connection is reset. */
  | "reset"
  /** Passed on later; what follows waits behind it. */
  | { readonly delayMs: number };

export type Flow = "open" | "stalled" | "lost";

interface Parcel {
  readonly content: Buffer | "end" | "reset";
  readonly dueMs: number;
  held: boolean;
}

/**
 * One direction of a proxied connection: a queue that keeps the order whatever the faults. It grows
 * without bound while stalled; tests send little.
 */
export class Lane {
  /** Seen so far, delivered or not. */
  readonly seen: { chunks: number; bytes: number } = { chunks: 0, bytes: 0 };
  /** Applies to what arrives from now on. */
  delayMs = 0;
  readonly #to: Socket;
  readonly #reset: () => void;
  #flow: Flow = "open";
  #queue: Parcel[] = [];
  #timer: NodeJS.Timeout | null = null;
  #bytesUntilReset = Number.POSITIVE_INFINITY;

  constructor(to: Socket, reset: () => void) {
    this.#to = to;
    this.#reset = reset;
  }

  get flow(): Flow {
    return this.#flow;
  }

  accept(bytes: Buffer, verdict: Verdict): void {
    this.seen.chunks += 1;
    this.seen.bytes += bytes.length;
    if (verdict === "reset") this.#reset();
    else if (verdict === "drop") this.lose();
    else if (typeof verdict === "object") this.#enqueue(bytes, verdict.delayMs);
    else this.#enqueue(bytes, this.delayMs, verdict === "hold");
  }

  /** The source has ended; the other side learns it after what is still under way. */
  finish(how: "end" | "reset"): void {
    this.#enqueue(how, this.delayMs);
  }

  /** Keeps everything back until `unstall`, as a network that is down for a while. */
  stall(): void {
    if (this.#flow === "open") this.#flow = "stalled";
  }

  /** Loses everything from now on, the end of the connection included: a half-open connection. */
  lose(): void {
    this.#flow = "lost";
  }

  /** Delivers what was stalled. What was lost stays lost, what is held stays held. */
  unstall(): void {
    if (this.#flow === "stalled") this.#flow = "open";
    this.#drain();
  }

  /** Delivers what the verdict "hold" kept back. */
  release(): void {
    for (const parcel of this.#queue) parcel.held = false;
    this.#drain();
  }

  get isHolding(): boolean {
    return this.#queue.some((parcel) => parcel.held);
  }

  /** Lets so many bytes through, be it to the middle of a message, then resets the connection. */
  resetAfter(bytes: number): void {
    this.#bytesUntilReset = bytes;
  }

  /** Forgets what is queued. */
  clear(): void {
    this.#queue = [];
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #enqueue(content: Parcel["content"], delayMs: number, held = false): void {
    if (this.#flow === "lost") return;
    this.#queue.push({ content, dueMs: performance.now() + delayMs, held });
    this.#drain();
  }

  #drain(): void {
    if (this.#timer || this.#flow === "stalled") return;
    for (;;) {
      const [parcel] = this.#queue;
      if (!parcel || parcel.held) return;
      const remainingMs = parcel.dueMs - performance.now();
      if (remainingMs > 0) {
        this.#timer = setTimeout(() => {
          this.#timer = null;
          this.#drain();
        }, remainingMs);
        return;
      }
      this.#queue.shift();
      this.#deliver(parcel.content);
    }
  }

  #deliver(content: Parcel["content"]): void {
    // A client that has gone misses its replies; that is no fault of the server's.
    if (this.#to.destroyed) return;
    if (content === "end") this.#to.end();
    else if (content === "reset") tcpReset(this.#to);
    else if (content.length < this.#bytesUntilReset) {
      this.#bytesUntilReset -= content.length;
      this.#to.write(content);
    } else {
      // The reset must not overtake the bytes before it: it waits until the kernel has them.
      this.#to.write(content.subarray(0, this.#bytesUntilReset), () => this.#reset());
      this.#bytesUntilReset = 0;
      this.lose();
    }
  }
}
