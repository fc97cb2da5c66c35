import type { EtcdStream } from "../../src/stores/etcd/etcd-client.js";

/** A stream of a simulated client, which the network may break and its owner may end. */
export class SimulatedStream<Request, Reply> implements EtcdStream<Request, Reply> {
  readonly #onWrite: (request: Request) => void;
  readonly #onData: ((reply: Reply) => void)[] = [];
  readonly #onError: ((error: Error) => void)[] = [];
  readonly #onClose: (() => void)[] = [];
  #isOpen = true;

  constructor(onWrite: (request: Request) => void) {
    this.#onWrite = onWrite;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  on(event: "data" | "error" | "end", listener: (what: never) => void): this {
    if (event === "data") this.#onData.push(listener as (reply: Reply) => void);
    if (event === "error") this.#onError.push(listener as (error: Error) => void);
    return this;
  }

  write(request: Request): boolean {
    if (this.#isOpen) this.#onWrite(request);
    return this.#isOpen;
  }

  end(): void {}

  cancel(): void {
    this.hangUp();
  }

  /** Ends the stream without an event. */
  hangUp(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const listener of this.#onClose) listener();
  }

  tell(reply: Reply): void {
    if (this.#isOpen) for (const listener of this.#onData) listener(reply);
  }

  break(message: string): void {
    if (!this.#isOpen) return;
    this.hangUp();
    for (const listener of this.#onError) listener(new Error(message));
  }

  onClose(listener: () => void): void {
    this.#onClose.push(listener);
  }
}
