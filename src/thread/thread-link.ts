import { type MessagePort, receiveMessageOnPort, type Worker } from "node:worker_threads";
import { StoreError } from "../errors.js";
import type { Port } from "../time/port.js";
import { type Timer, within } from "../time/timers.js";
import { errorOf } from "./error-copy.js";
import type { CallName, Calls, FromThread, ToThread } from "./messages.js";
import { Outbox } from "./outbox.js";

/** A thread that says nothing for this long, with calls under way, is asked for a sign of life. */
const SILENCE_MS = 30_000;
const CLOSE_MS = 10_000;

interface PendingCall {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** A message of the other thread that answers no call. */
export type UnaskedMessage = Exclude<FromThread, { type: "answer" | "failure" }>;

/** Hears the other thread. */
export interface LinkListener {
  onUnasked(message: UnaskedMessage): void;
  /** True if the message concerns this thread at once, before all that came earlier. */
  isUrgent(message: UnaskedMessage): boolean;
  /** An answer to a call that has failed here before. */
  onLateAnswer(value: unknown): void;
}

/**
 * The way to the thread of a store: calls and their answers. A call fails when the thread ends, or
 * when it is silent for long. Calls under way keep the process alive; the thread itself does not.
 */
export class ThreadLink {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #timers: Port["timers"];
  #listener: LinkListener | null = null;
  /** Messages that came before there was a listener. */
  #unheard: UnaskedMessage[] = [];
  readonly #outbox: Outbox<ToThread>;
  readonly #calls = new Map<number, PendingCall>();
  /** Taken from the port by `catchUp`, and not handled yet. */
  #early: FromThread[] = [];
  #ids = 0;
  #hasSpoken = true;
  #watch: Timer | undefined;
  #failure: StoreError | null = null;
  readonly #ended: Promise<unknown>;

  constructor(worker: Worker, port: MessagePort, timers: Port["timers"]) {
    this.#worker = worker;
    this.#port = port;
    this.#timers = timers;
    this.#outbox = new Outbox(port, timers.soon);
    port.on("message", (messages: readonly FromThread[]) => {
      this.#handleEarly();
      this.#handle(messages);
    });
    worker.on("error", (error) => this.#fail(error));
    this.#ended = new Promise((resolve) => {
      worker.once("exit", (code) => {
        this.#fail(new Error(`exit code ${code}`));
        resolve(code);
      });
    });
    worker.unref();
    port.unref();
  }

  listen(listener: LinkListener): void {
    this.#listener = listener;
    for (const message of this.#unheard.splice(0)) listener.onUnasked(message);
  }

  /** Sends a call; its number cancels it. */
  call<Name extends CallName>(
    name: Name,
    ...args: Parameters<Calls[Name]>
  ): { readonly id: number; readonly answer: Promise<ReturnType<Calls[Name]>> } {
    const id = ++this.#ids;
    const answer = new Promise<ReturnType<Calls[Name]>>((resolve, reject) => {
      if (this.#failure) return reject(this.#failure);
      this.#calls.set(id, { resolve: resolve as PendingCall["resolve"], reject });
      if (this.#calls.size === 1) this.#await();
      this.#outbox.post({ type: "call", id, name, args });
    });
    return { id, answer };
  }

  /** Sends a message that has no answer. */
  tell(message: ToThread): void {
    if (!this.#failure) this.#outbox.post(message);
  }

  /** Sends at once, and does not wait for the end of this turn. */
  tellNow(message: ToThread): void {
    this.tell(message);
    this.#outbox.flush();
  }

  /** Handles urgent messages that wait in the port now: the event loop may be blocked for long. */
  catchUp(): void {
    this.#takeAll();
    const rest: FromThread[] = [];
    for (const message of this.#early) {
      if (isUnasked(message) && this.#listener?.isUrgent(message))
        this.#listener.onUnasked(message);
      else rest.push(message);
    }
    this.#early = rest;
  }

  /** Ends the thread, when its store is closed or does not close. */
  async close(): Promise<void> {
    if (!this.#failure) {
      const { answer } = this.call("close");
      await within(this.#timers, CLOSE_MS, answer).catch(() => {});
      this.#failure ??= ended();
    }
    this.#port.close();
    await within(
      this.#timers,
      CLOSE_MS,
      this.#worker.terminate().then(() => this.#ended),
    ).catch(() => {});
  }

  /** Takes all messages from the port; they are handled in order, in a turn of their own. */
  #takeAll(): void {
    const wasEmpty = this.#early.length === 0;
    for (let next = take(this.#port); next; next = take(this.#port)) this.#early.push(...next);
    if (wasEmpty && this.#early.length > 0) this.#timers.soon(() => this.#handleEarly());
  }

  #handleEarly(): void {
    const early = this.#early;
    this.#early = [];
    this.#handle(early);
  }

  #handle(messages: readonly FromThread[]): void {
    this.#hasSpoken = true;
    for (const message of messages) {
      if (!isUnasked(message)) this.#settle(message);
      else if (this.#listener) this.#listener.onUnasked(message);
      else this.#unheard.push(message);
    }
  }

  #settle(message: Exclude<FromThread, UnaskedMessage>): void {
    const call = this.#calls.get(message.id);
    this.#calls.delete(message.id);
    if (this.#calls.size === 0) this.#rest();
    if (message.type === "failure") call?.reject(errorOf(message.error));
    else if (call) call.resolve(message.value);
    else this.#listener?.onLateAnswer(message.value);
  }

  /** Calls are under way: the process stays, and a thread that hangs is noticed. */
  #await(): void {
    this.#port.ref();
    this.#hasSpoken = true;
    const look = (): void => {
      // The answers may wait in the port: this thread may have been blocked itself.
      this.#takeAll();
      if (this.#early.length > 0) this.#hasSpoken = true;
      if (!this.#hasSpoken) return this.#rejectAll(silence());
      this.#hasSpoken = false;
      this.#outbox.post({ type: "call", id: 0, name: "now", args: [] });
      this.#watch = this.#timers.after(SILENCE_MS, look);
    };
    this.#watch = this.#timers.after(SILENCE_MS, look);
  }

  #rest(): void {
    this.#watch?.cancel();
    this.#port.unref();
  }

  #fail(error: Error): void {
    this.#failure ??= ended(error);
    // Answers that were sent before the end count.
    this.#takeAll();
    this.#handleEarly();
    this.#rejectAll(this.#failure);
  }

  #rejectAll(error: StoreError): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    this.#rest();
    for (const { reject } of calls) reject(error);
  }
}

function isUnasked(message: FromThread): message is UnaskedMessage {
  return message.type !== "answer" && message.type !== "failure";
}

function take(port: MessagePort): readonly FromThread[] | undefined {
  return (receiveMessageOnPort(port) as { message: readonly FromThread[] } | undefined)?.message;
}

function ended(cause?: Error): StoreError {
  const why = cause ? ` (${cause.message})` : "";
  const message = `The thread of the store has ended${why}: connect again.`;
  return new StoreError(message, {
    outcome: "unknown",
    retryable: false,
    ...(cause && { cause }),
  });
}

function silence(): StoreError {
  const message = `The thread of the store has said nothing for ${SILENCE_MS} ms.`;
  return new StoreError(message, { outcome: "unknown" });
}
