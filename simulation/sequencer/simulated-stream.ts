import type { EtcdStream } from "../../src/stores/etcd/client.js";
import type { StreamListener } from "../../src/stores/etcd/wire/grpc.js";

/** A stream of a simulated client, which the network may break and its owner may close. */
export class SimulatedStream<Request, Reply> implements EtcdStream<Request> {
  readonly #onWrite: (request: Request) => void;
  readonly #listener: StreamListener<Reply>;
  readonly #onClose: (() => void)[] = [];
  #isOpen = true;

  constructor(onWrite: (request: Request) => void, listener: StreamListener<Reply>) {
    this.#onWrite = onWrite;
    this.#listener = listener;
  }

  write(request: Request): void {
    if (this.#isOpen) this.#onWrite(request);
  }

  /** Ends the stream without an event. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const listener of this.#onClose) listener();
  }

  tell(reply: Reply): void {
    if (this.#isOpen) this.#listener.onReply(reply);
  }

  break(message: string): void {
    if (!this.#isOpen) return;
    this.close();
    this.#listener.onEnd(new Error(message));
  }

  onClose(listener: () => void): void {
    this.#onClose.push(listener);
  }
}
