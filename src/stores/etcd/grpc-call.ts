/**
 * One call of gRPC on a stream of HTTP/2.
 *
 * A message has five bytes before it: a flag that is 0 where the message is not compressed, and its
 * size. The status comes in the trailers of the stream, or in its headers where there is no
 * message. A stream that closes without a status says nothing about the effect of its call.
 */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { Unreadable } from "../../foreign-data.js";

/** The part of this process that a call belongs to. */
export interface CallListener {
  onMessage(message: Buffer): void;
  /** Null: etcd did as it was asked. */
  onStatus(error: Error | null): void;
  /** The stream is closed; comes last. */
  onClose(reason: string): void;
}

/** The status of a call that failed, as etcd told it. */
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
const MOST_BYTES = 256 * 1024 * 1024;

export class GrpcCall {
  readonly #stream: ClientHttp2Stream;
  readonly #listener: CallListener;
  /** The parts of a message whose end has not arrived, and their size. */
  #begun: Buffer[] = [];
  #begunBytes = 0;
  /** As many bytes are needed to read on. */
  #neededBytes = PREFIX_BYTES;
  #isOk = false;
  #failure: NodeJS.ErrnoException | null = null;

  /** `onClosed` is called after the listener, with the code of the failure of the stream. */
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
      if (this.#isOk && this.#begunBytes > 0) listener.onStatus(new Unreadable("a whole message"));
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

  cancel(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #onHeaders(headers: IncomingHttpHeaders, httpStatus: number | undefined): void {
    const code = headers["grpc-status"];
    if (code === "0") {
      this.#isOk = true;
      this.#tellOk();
    } else if (code !== undefined) {
      const text = decoded(String(headers["grpc-message"] ?? `status ${code}`));
      this.#listener.onStatus(new StatusError(Number(code), text));
    } else if (httpStatus !== undefined && httpStatus !== 200) {
      this.#listener.onStatus(new Error(`the answer has the HTTP status ${httpStatus}`));
    }
  }

  #onData(bytes: Buffer): void {
    this.#begun.push(bytes);
    this.#begunBytes += bytes.length;
    if (this.#begunBytes < this.#neededBytes) return;
    let rest = this.#begun.length === 1 ? bytes : Buffer.concat(this.#begun);
    this.#neededBytes = PREFIX_BYTES;
    while (rest.length >= PREFIX_BYTES) {
      const end = PREFIX_BYTES + rest.readUInt32BE(1);
      if (rest[0] !== 0 || end > MOST_BYTES) {
        this.#listener.onStatus(new Unreadable("a message of gRPC"));
        return this.cancel();
      }
      if (rest.length < end) {
        this.#neededBytes = end;
        break;
      }
      this.#listener.onMessage(rest.subarray(PREFIX_BYTES, end));
      rest = rest.subarray(end);
    }
    this.#begun = rest.length === 0 ? [] : [rest];
    this.#begunBytes = rest.length;
    this.#tellOk();
  }

  /** A call has not succeeded while the end of a message is missing. */
  #tellOk(): void {
    if (this.#isOk && this.#begunBytes === 0) this.#listener.onStatus(null);
  }
}

/** Words of a status are percent-encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
