import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { StoreError } from "../errors/index.js";
import type { Runtime } from "../time/runtime.js";
import { type Timer, within } from "../time/timers.js";
import { errorOf } from "./error-copy.js";
import type { CallName, Calls, FromThread, ToThread } from "./messages.js";
import { type Backlog, Outbox } from "./outbox.js";

/** A thread that has not said a word for this long has not started, and will not. */
const START_MS = 10_000;
/** A thread that says nothing for this long, with calls under way, is asked for a sign of life. */
const SILENCE_MS = 30_000;
const CLOSE_MS = 3_000;
/** The end of a thread closes its ports; the news of its end follows within this. */
const NEWS_MS = 1_000;

interface PendingCall {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** A message of the other thread that answers no call. */
export type UnaskedMessage = Exclude<FromThread, { type: "answer" | "failure" | "failed" }>;

/** Hears the other thread. */
export interface LinkListener {
  onUnasked(message: UnaskedMessage): void;
  /** True if the message concerns this thread at once, before all that came earlier. */
  isUrgent(message: UnaskedMessage): boolean;
  /** An answer to a call that has failed here before. */
  onLateAnswer(value: unknown): void;
}

/** The thread at the other end of a link. */
export interface LinkedThread {
  /** The thread said nothing for long. */
  onSilence(): void;
  /** The store of the link is closed. */
  onClose(link: ThreadConnection): Promise<void>;
}

/**
 * The way to one store in the thread: calls and their answers. A call fails when the store or its
 * thread ends, or when the thread is silent for long. Calls under way keep the process alive; the
 * thread itself does not.
 */
export class ThreadConnection {
  readonly #thread: LinkedThread;
  readonly #port: MessagePort;
  readonly #backlog: Backlog;
  readonly #timers: Runtime["timers"];
  #listener: LinkListener | null = null;
  /** Messages that came before there was a listener. */
  #unheard: UnaskedMessage[] = [];
  readonly #outbox: Outbox<ToThread>;
  readonly #calls = new Map<number, PendingCall>();
  /** Taken from the port by `catchUp`, and not handled yet. */
  #early: FromThread[] = [];
  #ids = 0;
  #hasStarted = false;
  #hasSpoken = true;
  #isLate = false;
  #watch: Timer | undefined;
  #failure: StoreError | null = null;

  constructor(
    thread: LinkedThread,
    port: MessagePort,
    backlog: Backlog,
    timers: Runtime["timers"],
  ) {
    this.#thread = thread;
    this.#port = port;
    this.#backlog = backlog;
    this.#timers = timers;
    this.#outbox = new Outbox(port, timers.soon);
    port.on("message", (messages: readonly FromThread[]) => {
      backlog.onReceived(messages.length);
      this.#handleEarly();
      this.#handle(messages);
    });
    port.on("close", () => this.#onPortClose());
    port.unref();
  }

  /** Calls wait for answers. */
  get hasCalls(): boolean {
    return this.#calls.size > 0;
  }

  get hasEnded(): boolean {
    return this.#failure !== null;
  }

  /** The thread let the time of a call pass, and has said nothing since. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Resolves when the thread runs; rejects if it ends, or does not start in time. */
  async start(): Promise<void> {
    await this.call("now").answer;
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

  /** As `call`, but fails if the answer takes longer than `limitMs`. */
  callWithin<Name extends CallName>(
    limitMs: number,
    name: Name,
    ...args: Parameters<Calls[Name]>
  ): Promise<ReturnType<Calls[Name]>> {
    const { id, answer } = this.call(name, ...args);
    const limit = this.#timers.after(limitMs, () => this.#onLate(id, limitMs));
    return answer.finally(() => limit.cancel());
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

  /** Closes the store in the thread, which goes on for the other stores. */
  async close(): Promise<void> {
    if (!this.#failure) {
      const { answer } = this.call("close");
      await within(this.#timers, CLOSE_MS, answer).catch(() => {});
    }
    this.#fail(closed());
    this.#port.close();
    await this.#thread.onClose(this);
  }

  /** The thread has ended. */
  onThreadEnd(error: Error): void {
    this.#fail(ended(error));
  }

  /** Takes all messages from the port; they are handled in order, in a turn of their own. */
  #takeAll(): void {
    const wasEmpty = this.#early.length === 0;
    for (let next = take(this.#port); next; next = take(this.#port)) {
      this.#backlog.onReceived(next.length);
      for (const message of next) this.#early.push(message);
    }
    if (wasEmpty && this.#early.length > 0) this.#timers.soon(() => this.#handleEarly());
  }

  #handleEarly(): void {
    const early = this.#early;
    this.#early = [];
    this.#handle(early);
  }

  /** The watch goes on: a thread that hangs is noticed by further stores. */
  #onLate(id: number, limitMs: number): void {
    // The answer may wait in the port: this thread may have been blocked itself.
    this.#takeAll();
    this.#handleEarly();
    const call = this.#calls.get(id);
    if (!call) return;
    this.#isLate = true;
    this.#calls.delete(id);
    if (this.#calls.size === 0) this.#port.unref();
    call.reject(late(limitMs));
  }

  #handle(messages: readonly FromThread[]): void {
    if (messages.length === 0) return;
    this.#isLate = false;
    this.#hasSpoken = true;
    this.#hasStarted = true;
    for (const message of messages) {
      if (message.type === "failed") this.#fail(failed(errorOf(message.error)));
      else if (!isUnasked(message)) this.#settle(message);
      else if (this.#listener) this.#listener.onUnasked(message);
      else this.#unheard.push(message);
    }
  }

  #settle(message: Extract<FromThread, { type: "answer" | "failure" }>): void {
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
    const look = (): void => {
      // The answers may wait in the port: this thread may have been blocked itself.
      this.#takeAll();
      if (this.#early.length > 0) this.#hasSpoken = true;
      if (!this.#hasSpoken) return this.#onSilence();
      if (!this.hasCalls && !this.#isLate) return;
      this.#hasSpoken = false;
      this.#outbox.post({ type: "call", id: 0, name: "now", args: [] });
      this.#watch = this.#timers.after(SILENCE_MS, look);
    };
    this.#hasSpoken = this.#hasStarted;
    this.#watch?.cancel();
    this.#watch = this.#timers.after(this.#hasStarted ? SILENCE_MS : START_MS, look);
  }

  #onSilence(): void {
    this.#thread.onSilence();
    if (this.#hasStarted) this.#rejectAll(silence());
    else this.#fail(notStarted());
  }

  /** The thread has ended. The news of why does not keep the process alive until it is here. */
  #onPortClose(): void {
    if (this.#failure) return;
    const error = new Error("its port was closed");
    this.#watch?.cancel();
    this.#watch = this.#timers.after(NEWS_MS, () => this.#fail(ended(error)), this.hasCalls);
  }

  #rest(): void {
    this.#watch?.cancel();
    this.#port.unref();
  }

  #fail(error: StoreError): void {
    if (this.#failure) return;
    this.#failure = error;
    // Answers that were sent before the end count.
    this.#takeAll();
    this.#handleEarly();
    this.#rejectAll(error);
  }

  #rejectAll(error: StoreError): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    this.#rest();
    for (const { reject } of calls) reject(error);
  }
}

function isUnasked(message: FromThread): message is UnaskedMessage {
  return message.type !== "answer" && message.type !== "failure" && message.type !== "failed";
}

function take(port: MessagePort): readonly FromThread[] | undefined {
  return (receiveMessageOnPort(port) as { message: readonly FromThread[] } | undefined)?.message;
}

function ended(cause: Error): StoreError {
  const message = `The thread of the store has ended (${cause.message}): connect again.`;
  return new StoreError(message, { outcome: "unknown", retryable: false, cause });
}

function failed(cause: Error): StoreError {
  const message = `The store has failed in its thread (${cause.message}): connect again.`;
  return new StoreError(message, { outcome: "unknown", retryable: false, cause });
}

function closed(): StoreError {
  const message = "The store was closed before it answered.";
  return new StoreError(message, { outcome: "unknown", retryable: false });
}

function notStarted(): StoreError {
  const why = "Is a module that Node preloads (--import, --require) stuck?";
  const message = `The thread of the store did not start within ${START_MS} ms. ${why}`;
  return new StoreError(message, { outcome: "unknown", retryable: true });
}

function late(limitMs: number): StoreError {
  const message = `The thread of the store did not answer within ${Math.round(limitMs)} ms.`;
  return new StoreError(message, { outcome: "unknown" });
}

function silence(): StoreError {
  const message = `The thread of the store has said nothing for ${SILENCE_MS} ms.`;
  return new StoreError(message, { outcome: "unknown" });
}
