import { type Reply, readMessage } from "../servers/resp.js";

/** A chunk from the client; with RESP framing one whole command. */
export interface ProxiedRequest {
  readonly bytes: Buffer;
  /** In capitals; "" without framing. */
  readonly command: string;
  /** The arguments of the command; empty without framing. */
  readonly args: readonly string[];
}

/** A chunk from the server; with RESP framing one whole reply. */
export interface ProxiedReply {
  readonly bytes: Buffer;
  /** The request of the reply; null for a push and without framing. */
  readonly to: ProxiedRequest | null;
  /** Whether it is a push: a message that answers no request. */
  readonly pushed: boolean;
  /** The decoded reply; undefined without framing. */
  readonly value: Reply | undefined;
}

/** Splits the two streams of one connection into the messages that faults apply to. */
export interface Framing {
  requests(chunk: Buffer): readonly ProxiedRequest[];
  replies(chunk: Buffer): readonly ProxiedReply[];
  /** The bytes of an incomplete message. */
  readonly unfinishedRequest: Buffer;
  readonly unfinishedReply: Buffer;
}

/** Chunks as the network delivers them. */
export class ChunkFraming implements Framing {
  readonly unfinishedRequest: Buffer = Buffer.alloc(0);
  readonly unfinishedReply: Buffer = Buffer.alloc(0);

  requests(bytes: Buffer): readonly ProxiedRequest[] {
    return [{ bytes, command: "", args: [] }];
  }

  replies(bytes: Buffer): readonly ProxiedReply[] {
    return [{ bytes, to: null, pushed: false, value: undefined }];
  }
}

const subscribing = /^[PS]?(UN)?SUBSCRIBE$/;
const pushKinds = /^([ps]?message|[ps]?(un)?subscribe)$/;

/**
 * Whole RESP messages, each reply paired with its request. Replies to (un)subscribe count as
 * pushes, as in RESP3: their number depends on the channels. (The error reply of a failed subscribe
 * is paired with the next request.)
 */
export class RespFraming implements Framing {
  readonly #requests = new Splitter();
  readonly #replies = new Splitter();
  readonly #unanswered: ProxiedRequest[] = [];
  #subscribed = false;

  get unfinishedRequest(): Buffer {
    return this.#requests.rest;
  }

  get unfinishedReply(): Buffer {
    return this.#replies.rest;
  }

  requests(chunk: Buffer): readonly ProxiedRequest[] {
    return this.#requests.push(chunk).map(({ bytes, value }) => {
      const [command = "", ...args] = (Array.isArray(value) ? value : [value]).map(String);
      const request = { bytes, command: command.toUpperCase(), args };
      if (subscribing.test(request.command)) this.#subscribed = true;
      else this.#unanswered.push(request);
      return request;
    });
  }

  replies(chunk: Buffer): readonly ProxiedReply[] {
    return this.#replies.push(chunk).map((frame) => {
      const pushed = this.#isPush(frame);
      const to = pushed ? null : (this.#unanswered.shift() ?? null);
      return { bytes: frame.bytes, to, pushed, value: frame.value };
    });
  }

  #isPush({ type, value }: Frame): boolean {
    if (type === ">") return true;
    const first = Array.isArray(value) ? value[0] : null;
    return this.#subscribed && typeof first === "string" && pushKinds.test(first);
  }
}

interface Frame {
  readonly bytes: Buffer;
  readonly type: string;
  readonly value: Reply;
}

class Splitter {
  rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): readonly Frame[] {
    this.rest = Buffer.concat([this.rest, chunk]);
    const frames: Frame[] = [];
    for (;;) {
      const message = readMessage(this.rest);
      if (!message) return frames;
      const { type, value, end } = message;
      frames.push({ bytes: this.rest.subarray(0, end), type, value });
      this.rest = this.rest.subarray(end);
    }
  }
}
