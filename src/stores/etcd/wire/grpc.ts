/**
 * A gRPC call on an HTTP/2 stream, and the two ways to use one: `SingleReply` and `MessageStream`.
 *
 * Five bytes precede a message: a flag that is 0 if the message is not compressed, and its size.
 * The status comes in the trailers of the stream, or in its headers if there is no message. A
 * stream that closes without a status says nothing about the effect of its call.
 */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { Unreadable } from "../../../events/foreign-data.js";
import { type Method, readReply } from "./messages.js";

/** Receives what etcd answers to a call. */
export interface CallListener {
  onMessage(message: Buffer): void;
  /** Null: etcd did what it was asked to do. */
  onStatus(error: Error | null): void;
  /** The stream has closed; called last. */
  onClose(reason: string): void;
}

/** The status that etcd gave a failed call. */
export class StatusError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "StatusError";
    this.code = code;
  }
}

const PREFIX_BYTES = 5;
/** etcd takes requests of 1.5 MB; a reply that lists many keys is larger. */
const MAX_BYTES = 256 * 1024 * 1024;

export class GrpcCall {
  readonly #stream: ClientHttp2Stream;
  readonly #listener: CallListener;
  /** The parts of a message whose end has not arrived, and their size. */
  #begun: Buffer[] = [];
  #begunBytes = 0;
  /** The decoder goes on when this many bytes have arrived. */
  #neededBytes = PREFIX_BYTES;
  #isOk = false;
  #isCancelled = false;
  #failure: NodeJS.ErrnoException | null = null;

  /** Calls `onClosed` after the listener, with the error code of the stream. */
  constructor(
    stream: ClientHttp2Stream,
    listener: CallListener,
    onClosed: (code: string | undefined) => void,
  ) {
    this.#stream = stream;
    this.#listener = listener;
    stream.on("response", (headers) => this.#onHeaders(headers, headers[":status"]));
    stream.on("trailers", (headers) => this.#onHeaders(headers, undefined));
    stream.on("data", (bytes: Buffer) => this.#onData(bytes));
    stream.on("error", (error: Error) => {
      this.#failure = error;
    });
    stream.on("close", () => {
      const isCut = this.#isOk && !this.#isCancelled && this.#begunBytes > 0;
      if (isCut) listener.onStatus(new Unreadable("a whole message"));
      listener.onClose(this.#failure?.message ?? "Connection dropped");
      onClosed(this.#failure?.code);
    });
  }

  send(message: Buffer, isLast: boolean): void {
    const framed = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
    framed[0] = 0;
    framed.writeUInt32BE(message.length, 1);
    message.copy(framed, PREFIX_BYTES);
    if (isLast) this.#stream.end(framed);
    else this.#stream.write(framed);
  }

  end(): void {
    this.#stream.end();
  }

  /** The listener hears nothing more but `onClose`. */
  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    // Node's HTTP/2 corrupts memory if a stream is reset while it reads from the connection.
    setImmediate(() => this.#stream.close(constants.NGHTTP2_CANCEL));
  }

  #onHeaders(headers: IncomingHttpHeaders, httpStatus: number | undefined): void {
    if (this.#isCancelled) return;
    const code = headers["grpc-status"];
    if (code === "0") {
      this.#isOk = true;
      this.#reportOk();
    } else if (code !== undefined) {
      const text = decoded(String(headers["grpc-message"] ?? `status ${code}`));
      this.#listener.onStatus(new StatusError(Number(code), text));
    } else if (httpStatus !== undefined && httpStatus !== 200) {
      this.#listener.onStatus(new Error(`the answer has the HTTP status ${httpStatus}`));
    }
  }

  #onData(bytes: Buffer): void {
    if (this.#isCancelled) return;
    this.#begun.push(bytes);
    this.#begunBytes += bytes.length;
    if (this.#begunBytes < this.#neededBytes) return;
    let rest = this.#begun.length === 1 ? bytes : Buffer.concat(this.#begun);
    this.#neededBytes = PREFIX_BYTES;
    while (rest.length >= PREFIX_BYTES) {
      const end = PREFIX_BYTES + rest.readUInt32BE(1);
      if (rest[0] !== 0 || end > MAX_BYTES) {
        this.#listener.onStatus(new Unreadable("a message of gRPC"));
        return this.cancel();
      }
      if (rest.length < end) {
        this.#neededBytes = end;
        break;
      }
      this.#listener.onMessage(rest.subarray(PREFIX_BYTES, end));
      if (this.#isCancelled) return;
      rest = rest.subarray(end);
    }
    this.#begun = rest.length === 0 ? [] : [rest];
    this.#begunBytes = rest.length;
    this.#reportOk();
  }

  /** Waits for the end of the last message: until then the call has not succeeded. */
  #reportOk(): void {
    if (this.#isOk && this.#begunBytes === 0) this.#listener.onStatus(null);
  }
}

/** The text of a status is percent-encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The one reply of a call, after etcd has reported that the call succeeded. */
export class SingleReply implements CallListener {
  readonly message: Promise<Buffer>;
  #resolve: (message: Buffer) => void = () => {};
  #reject: (error: Error) => void = () => {};
  #received: Buffer | null = null;
  #isOk = false;

  constructor() {
    this.message = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  onMessage(message: Buffer): void {
    if (this.#received) return this.#reject(new Unreadable("one message"));
    this.#received = message;
    if (this.#isOk) this.#resolve(message);
  }

  onStatus(error: Error | null): void {
    if (error) return this.#reject(error);
    this.#isOk = true;
    if (this.#received) this.#resolve(this.#received);
  }

  onClose(reason: string): void {
    // Errors are expensive to create, and most calls have their answer by now.
    if (!this.#isOk || !this.#received) this.#reject(new Error(reason));
  }
}

/** Receives the replies of a stream. */
export interface StreamListener<Reply> {
  onReply(reply: Reply): void;
  /** Called once, unless this side closed the stream. Null: etcd ended the stream. */
  onEnd(error: Error | null): void;
}

/** A call with a stream of messages in both directions. */
export class MessageStream<Request, Reply> implements CallListener {
  readonly #method: Method<Request, Reply>;
  readonly #listener: StreamListener<Reply>;
  readonly #call: GrpcCall;
  #isOver = false;

  /** `start` starts the call. */
  constructor(
    method: Method<Request, Reply>,
    listener: StreamListener<Reply>,
    start: (listener: CallListener) => GrpcCall,
  ) {
    this.#method = method;
    this.#listener = listener;
    this.#call = start(this);
  }

  write(request: Request): void {
    if (!this.#isOver) this.#call.send(this.#method.request.encode(request), false);
  }

  close(): void {
    this.#isOver = true;
    this.#call.end();
    this.#call.cancel();
  }

  onMessage(bytes: Buffer): void {
    if (this.#isOver) return;
    let reply: Reply;
    try {
      reply = readReply<Reply>(this.#method, bytes);
    } catch (error) {
      this.onStatus(error as Error);
      this.#call.cancel();
      return;
    }
    this.#listener.onReply(reply);
  }

  onStatus(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listener.onEnd(error);
  }

  onClose(reason: string): void {
    this.onStatus(new Error(reason));
  }
}
