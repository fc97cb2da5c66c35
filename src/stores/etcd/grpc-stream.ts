import type { EtcdStream } from "./etcd-client.js";
import { type Method, readReply } from "./etcd-messages.js";
import type { CallListener, GrpcCall } from "./grpc-call.js";
import type { GrpcConnection, Metadata } from "./grpc-connection.js";

type Listener = (value: never) => void;

/** A call with many messages in both directions. It is told over once, and not after `cancel`. */
export class GrpcStream<Request, Reply> implements EtcdStream<Request, Reply>, CallListener {
  readonly #method: Method<Request, Reply>;
  readonly #onFailure: (error: Error) => void;
  readonly #call: GrpcCall;
  readonly #listeners = { data: [] as Listener[], error: [] as Listener[], end: [] as Listener[] };
  #isOver = false;

  constructor(
    method: Method<Request, Reply>,
    connection: GrpcConnection,
    metadata: Metadata,
    onFailure: (error: Error) => void,
  ) {
    this.#method = method;
    this.#onFailure = onFailure;
    this.#call = connection.start(method.path, metadata, this);
  }

  on(event: "data" | "error" | "end", listener: Listener): this {
    this.#listeners[event].push(listener);
    return this;
  }

  write(request: Request): void {
    if (!this.#isOver) this.#call.send(this.#method.request.encode(request), false);
  }

  end(): void {
    this.#call.end();
  }

  cancel(): void {
    this.#isOver = true;
    this.#call.cancel();
  }

  onMessage(bytes: Buffer): void {
    if (this.#isOver) return;
    let reply: Reply;
    try {
      reply = readReply<Reply>(this.#method, bytes);
    } catch (error) {
      this.onStatus(error as Error);
      return this.#call.cancel();
    }
    this.#tell("data", reply);
  }

  onStatus(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (error) this.#onFailure(error);
    this.#tell(error ? "error" : "end", error);
  }

  onClose(reason: string): void {
    this.onStatus(new Error(reason));
  }

  #tell(event: "data" | "error" | "end", value: unknown): void {
    for (const listener of this.#listeners[event]) listener(value as never);
  }
}
