/** The requests of one connection that have no reply yet, in the order of sending. */
import { Unreadable } from "../../../events/foreign-data.js";
import { Fifo } from "../../../rules/fifo.js";
import { type RequestOutcome, serverError, ZookeeperError } from "../errors.js";
import { type JuteReader, JuteWriter } from "./jute.js";
import type { Request } from "./requests.js";
import type { WatchTable } from "./watch-table.js";

/** By default a server ends the connection of a client that sends a larger request. */
const MAX_REQUEST_BYTES = 0xf_ff_ff;
/** A server works on 1,000 requests at a time by default, and reads no further ones meanwhile. */
const MAX_REQUESTS = 16_384;
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_XID = 2 ** 31 - 1;

interface Pending {
  readonly xid: number;
  readonly path: string;
  readonly bytes: number;
  /** Null after it was given to the socket. */
  frame: Buffer | null;
  /** Throws `Unreadable`, and settles nothing then. */
  onReply(reader: JuteReader, zxid: bigint, error: ZookeeperError | null): void;
  reject(error: ZookeeperError): void;
}

export class PendingRequests {
  readonly #chroot: string;
  readonly #watches: WatchTable;
  readonly #pending = new Fifo<Pending>();
  #unsent: Pending[] = [];
  #bytes = 0;
  #xid = 0;

  constructor(chroot: string, watches: WatchTable) {
    this.#chroot = chroot;
    this.#watches = watches;
  }

  get hasUnsent(): boolean {
    return this.#unsent.length > 0;
  }

  add<Reply>(request: Request<Reply>): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#pending.size >= MAX_REQUESTS || this.#bytes > MAX_BYTES) {
        return reject(notSent("too_many_requests", "too many requests without a reply"));
      }
      this.#xid = this.#xid === MAX_XID ? 1 : this.#xid + 1;
      const frame = requestFrame(this.#xid, request, this.#chroot);
      if (frame.length > MAX_REQUEST_BYTES) {
        return reject(notSent("too_large", `a request of ${frame.length} bytes is too large`));
      }
      const onReply = (reader: JuteReader, zxid: bigint, error: ZookeeperError | null): void => {
        const reply = error ? request.readError?.(error, zxid) : request.read(reader, zxid);
        if (reply === undefined) return reject(error);
        if (!reader.isAtEnd) throw new Unreadable("the end of a reply");
        const { watch } = request;
        // Before the caller goes on: the next frame may be the event of this watch.
        const kind = watch?.kindBy(reply);
        if (watch && kind) this.#watches.add(kind, request.path, watch.listener);
        resolve(reply);
      };
      const { length: bytes } = frame;
      const pending = { xid: this.#xid, path: request.path, bytes, frame, onReply, reject };
      this.#pending.push(pending);
      this.#unsent.push(pending);
      this.#bytes += bytes;
    });
  }

  /** The bytes of all requests that were not sent. From now on they count as sent. */
  takeUnsent(): Buffer {
    const frames = this.#unsent.map((pending) => {
      const { frame } = pending;
      pending.frame = null;
      return frame ?? Buffer.alloc(0);
    });
    this.#unsent = [];
    return frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames);
  }

  /** Throws `Unreadable` where the reply is not that of the oldest request. */
  settle(reader: JuteReader, header: ReplyHeader): void {
    const { xid, zxid, errorNumber } = header;
    const { first } = this.#pending;
    if (first?.xid !== xid || first.frame) throw new Unreadable("a reply in the order of requests");
    first.onReply(reader, zxid, errorNumber === 0 ? null : serverError(errorNumber, first.path));
    this.#pending.shift();
    this.#bytes -= first.bytes;
  }

  /** `outcome`: of the requests that were sent. */
  rejectAll(reason: ZookeeperError, outcome: RequestOutcome): void {
    this.#unsent = [];
    for (let one = this.#pending.shift(); one; one = this.#pending.shift()) {
      one.reject(reason.for(one.frame ? "not_sent" : outcome));
    }
  }
}

/** The part of a reply that all replies have. */
export interface ReplyHeader {
  readonly xid: number;
  readonly zxid: bigint;
  readonly errorNumber: number;
}

export function readHeader(reader: JuteReader): ReplyHeader {
  return { xid: reader.int(), zxid: reader.long(), errorNumber: reader.int() };
}

export function requestFrame<Reply>(xid: number, request: Request<Reply>, chroot: string): Buffer {
  const writer = new JuteWriter(chroot).int(xid).int(request.operation);
  request.write(writer);
  return writer.frame();
}

function notSent(code: "too_many_requests" | "too_large", message: string): ZookeeperError {
  return new ZookeeperError(code, "not_sent", message);
}
