import type { Framing, ProxiedReply, ProxiedRequest } from "./framing.js";

const SIZE_BYTES = 4;
const PING_XID = -2;
const EVENT_XID = -1;

/** The names of requests, by their numbers. */
const COMMANDS: Readonly<Record<number, string>> = {
  [-11]: "CLOSE",
  2: "DELETE",
  3: "EXISTS",
  4: "GETDATA",
  5: "SETDATA",
  9: "SYNC",
  11: "PING",
  12: "GETCHILDREN2",
  14: "MULTI",
  15: "CREATE2",
  19: "CREATECONTAINER",
  100: "AUTH",
  101: "SETWATCHES",
};
const WITHOUT_PATH = new Set(["CLOSE", "PING", "MULTI", "AUTH", "SETWATCHES"]);

/**
 * Whole messages of ZooKeeper, each reply paired with its request. The command of the first request
 * of a connection is CONNECT, the argument of others is their path. The value of a reply is the
 * number of its error, 0 for none. Four-letter words pass as chunks.
 */
export class ZookeeperFraming implements Framing {
  readonly #requests = new Splitter();
  readonly #replies = new Splitter();
  readonly #unanswered: { readonly xid: number; readonly request: ProxiedRequest }[] = [];
  #state: "new" | "word" | "session" = "new";
  #isAnswered = false;

  get unfinishedRequest(): Buffer {
    return this.#requests.rest;
  }

  get unfinishedReply(): Buffer {
    return this.#replies.rest;
  }

  requests(chunk: Buffer): readonly ProxiedRequest[] {
    if (this.#state === "new" && /^[a-z]{4}/.test(chunk.toString("latin1"))) this.#state = "word";
    if (this.#state === "word") return [{ bytes: chunk, command: "", args: [] }];
    return this.#requests.push(chunk).map((bytes) => {
      const isFirst = this.#state === "new";
      this.#state = "session";
      const request = isFirst ? { bytes, command: "CONNECT", args: [] } : parse(bytes);
      this.#unanswered.push({ xid: isFirst ? 0 : bytes.readInt32BE(SIZE_BYTES), request });
      return request;
    });
  }

  replies(chunk: Buffer): readonly ProxiedReply[] {
    if (this.#state === "word") {
      return [{ bytes: chunk, to: null, pushed: false, value: undefined }];
    }
    return this.#replies.push(chunk).map((bytes) => {
      const isFirst = !this.#isAnswered;
      this.#isAnswered = true;
      const xid = isFirst ? 0 : bytes.readInt32BE(SIZE_BYTES);
      const value = isFirst ? 0 : bytes.readInt32BE(SIZE_BYTES + 12);
      const at = this.#unanswered.findIndex((one) => one.xid === xid);
      const [found] = at < 0 ? [] : this.#unanswered.splice(at, 1);
      return { bytes, to: found?.request ?? null, pushed: xid === EVENT_XID, value };
    });
  }
}

function parse(bytes: Buffer): ProxiedRequest {
  const xid = bytes.readInt32BE(SIZE_BYTES);
  const operation = bytes.readInt32BE(SIZE_BYTES + 4);
  const command = xid === PING_XID ? "PING" : (COMMANDS[operation] ?? `${operation}`);
  if (WITHOUT_PATH.has(command)) return { bytes, command, args: [] };
  const start = SIZE_BYTES + 12;
  const path = bytes.toString("utf8", start, start + bytes.readInt32BE(SIZE_BYTES + 8));
  return { bytes, command, args: [path] };
}

class Splitter {
  rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): readonly Buffer[] {
    this.rest = Buffer.concat([this.rest, chunk]);
    const frames: Buffer[] = [];
    while (this.rest.length >= SIZE_BYTES) {
      const end = SIZE_BYTES + this.rest.readInt32BE(0);
      if (this.rest.length < end) break;
      frames.push(this.rest.subarray(0, end));
      this.rest = this.rest.subarray(end);
    }
    return frames;
  }
}
