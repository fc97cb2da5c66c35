import type { MessagePort } from "node:worker_threads";

/** The other thread can do without some messages while this many wait for it. */
const MAX_BACKLOG = 10_000;

/** Counts the messages that the other thread has not received yet, in shared memory. */
export class Backlog {
  readonly memory: SharedArrayBuffer;
  readonly #cell: Int32Array;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cell = new Int32Array(memory);
  }

  get isLong(): boolean {
    return Atomics.load(this.#cell, 0) >= MAX_BACKLOG;
  }

  onSent(messages: number): void {
    Atomics.add(this.#cell, 0, messages);
  }

  onReceived(messages: number): void {
    Atomics.sub(this.#cell, 0, messages);
  }
}

/** Sends the messages of one turn together: each message on its own would wake the other thread. */
export class Outbox<Message> {
  readonly #port: MessagePort;
  readonly #soon: (task: () => void) => void;
  readonly #backlog: Backlog | null;
  #messages: Message[] = [];

  constructor(port: MessagePort, soon: (task: () => void) => void, backlog: Backlog | null = null) {
    this.#port = port;
    this.#soon = soon;
    this.#backlog = backlog;
  }

  post(message: Message): void {
    if (this.#messages.length === 0) this.#soon(() => this.flush());
    this.#messages.push(message);
  }

  /**
   * Posts news that nothing depends on, unless the other thread is far behind. Its event loop may
   * be blocked for hours, and all that is posted stays in memory until then.
   */
  offer(message: Message): void {
    if (!this.#backlog?.isLong) this.post(message);
  }

  /** Sends at once. */
  flush(): void {
    if (this.#messages.length === 0) return;
    const messages = this.#messages;
    this.#messages = [];
    this.#backlog?.onSent(messages.length);
    this.#port.postMessage(messages);
  }
}
