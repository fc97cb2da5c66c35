import type { MessagePort } from "node:worker_threads";

/** Sends the messages of one turn together: each message on its own would wake the other thread. */
export class Outbox<Message> {
  readonly #port: MessagePort;
  readonly #soon: (task: () => void) => void;
  #messages: Message[] = [];

  constructor(port: MessagePort, soon: (task: () => void) => void) {
    this.#port = port;
    this.#soon = soon;
  }

  post(message: Message): void {
    if (this.#messages.length === 0) this.#soon(() => this.flush());
    this.#messages.push(message);
  }

  /** Sends at once. */
  flush(): void {
    if (this.#messages.length === 0) return;
    const messages = this.#messages;
    this.#messages = [];
    this.#port.postMessage(messages);
  }
}
