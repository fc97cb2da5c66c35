import type { Socket } from "node:net";
import { tcpReset } from "./tcp-reset.js";

/** The decision of the proxy about one chunk (with framing: one message). */
export type Verdict =
  | "pass"
  /** Loses it and all later bytes in this direction: TCP cannot lose bytes from the middle. */
  | "drop"
  /** Loses it alone: a message that a pooler did not pass on. */
  | "omit"
  /** Keeps it back, with all later bytes in this direction, until `release`. */
  | "hold"
  /** Loses it and resets the connection. */
  | "reset"
  /** Passes it on later; later bytes wait behind it. */
  | { readonly delayMs: number };

export type Flow = "open" | "stalled" | "lost";

interface Parcel {
  readonly content: Buffer | "end" | "reset";
  readonly dueMs: number;
  held: boolean;
}

/**
 * One direction of a proxied connection: a queue that keeps the order under all faults. It has no
 * limit while stalled, because tests send little.
 */
export class Lane {
  /** All bytes so far, delivered or not. */
  readonly seen: { chunks: number; bytes: number } = { chunks: 0, bytes: 0 };
  /** Applies to bytes that arrive from now on. */
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
    else if (verdict === "omit") return;
    else if (verdict === "drop") this.lose();
    else if (typeof verdict === "object") this.#enqueue(bytes, verdict.delayMs);
    else this.#enqueue(bytes, this.delayMs, verdict === "hold");
  }

  /** Passes on the end of the source, after all queued bytes. */
  finish(how: "end" | "reset"): void {
    this.#enqueue(how, this.delayMs);
  }

  /** Keeps all bytes back until `unstall`, like a network that is down for a while. */
  stall(): void {
    if (this.#flow === "open") this.#flow = "stalled";
  }

  /** Loses all later bytes and the end of the connection, which stays half-open. */
  lose(): void {
    this.#flow = "lost";
  }

  /** Delivers stalled bytes. Lost bytes stay lost, held bytes stay held. */
  unstall(): void {
    if (this.#flow === "stalled") this.#flow = "open";
    this.#drain();
  }

  /** Delivers the bytes that the verdict "hold" kept back. */
  release(): void {
    for (const parcel of this.#queue) parcel.held = false;
    this.#drain();
  }

  get isHolding(): boolean {
    return this.#queue.some((parcel) => parcel.held);
  }

  /** Passes on that many bytes, even half a message, then resets the connection. */
  resetAfter(bytes: number): void {
    this.#bytesUntilReset = bytes;
  }

  /** Drops all queued bytes. */
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
    // The client has disconnected, so its replies go nowhere.
    if (this.#to.destroyed) return;
    if (content === "end") this.#to.end();
    else if (content === "reset") tcpReset(this.#to);
    else if (content.length < this.#bytesUntilReset) {
      this.#bytesUntilReset -= content.length;
      this.#to.write(content);
    } else {
      // The reset waits until the kernel has the bytes, or it would overtake them.
      this.#to.write(content.subarray(0, this.#bytesUntilReset), () => this.#reset());
      this.#bytesUntilReset = 0;
      this.lose();
    }
  }
}
