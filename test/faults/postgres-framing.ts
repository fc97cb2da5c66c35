import type { Framing, ProxiedReply, ProxiedRequest } from "./framing.js";

/** The requests without a type: the start of a connection, or a question for TLS. */
const UNTYPED = new Set([196_608, 196_610, 80_877_102, 80_877_103, 80_877_104]);
const PASSWORD = "p";
const [QUERY, PARSE, BIND, SYNC, FLUSH] = ["Q", "P", "B", "S", "H"] as const;
const [READY, NOTIFICATION, NOTICE, PARAMETER, ERROR] = ["Z", "A", "N", "S", "E"] as const;
/** The last messages of the answer to a description that the client asked for without a Sync. */
const DESCRIBED = new Set(["T", "n", ERROR]);

interface Message {
  readonly type: string;
  readonly bytes: Buffer;
  readonly body: Buffer;
}

/**
 * Whole exchanges of Postgres: a request is all that a client sends up to a Query, Sync or Flush,
 * and its reply is all that the server sends for it. The texts of a request are the statements and
 * the values in it. A notification is a push, with the value ["message", channel, payload].
 */
export class PostgresFraming implements Framing {
  readonly #requests = new Splitter(true);
  readonly #replies = new Splitter(false);
  readonly #unanswered: ProxiedRequest[] = [];
  #asking: Message[] = [];
  #answering: Message[] = [];
  #isStarted = false;

  get unfinishedRequest(): Buffer {
    return Buffer.concat([...this.#asking.map(({ bytes }) => bytes), this.#requests.rest]);
  }

  get unfinishedReply(): Buffer {
    return Buffer.concat([...this.#answering.map(({ bytes }) => bytes), this.#replies.rest]);
  }

  requests(chunk: Buffer): readonly ProxiedRequest[] {
    const requests: ProxiedRequest[] = [];
    for (const message of this.#requests.push(chunk)) {
      this.#asking.push(message);
      if (message.type !== "" && !isEnd(message.type)) continue;
      const asked = this.#asking.splice(0);
      const command = message.type === "" ? "START" : message.type === FLUSH ? "DESCRIBE" : "RUN";
      const request = { bytes: joined(asked), command, args: asked.flatMap(textsOf) };
      if (message.type === QUERY || message.type === SYNC || message.type === FLUSH) {
        this.#unanswered.push(request);
      }
      requests.push(request);
    }
    return requests;
  }

  replies(chunk: Buffer): readonly ProxiedReply[] {
    const replies: ProxiedReply[] = [];
    for (const message of this.#replies.push(chunk)) {
      const reply = this.#reply(message);
      if (reply) replies.push(reply);
    }
    return replies;
  }

  #reply(message: Message): ProxiedReply | null {
    const { type, bytes, body } = message;
    if (type === NOTIFICATION) {
      const [channel = "", payload = ""] = body.toString("utf8", 4).split("\0");
      return { bytes, to: null, pushed: true, value: ["message", channel, payload] };
    }
    const isAside = type === "" || type === NOTICE || type === PARAMETER;
    if (isAside || !this.#isStarted) {
      if (type === READY) this.#isStarted = true;
      return { bytes, to: null, pushed: true, value: null };
    }
    this.#answering.push(message);
    const isDescription = this.#unanswered[0]?.command === "DESCRIBE";
    if (isDescription ? !DESCRIBED.has(type) : type !== READY) return null;
    const to = this.#unanswered.shift() ?? null;
    return { bytes: joined(this.#answering.splice(0)), to, pushed: false, value: null };
  }
}

function isEnd(type: string): boolean {
  return type === QUERY || type === SYNC || type === FLUSH || type === PASSWORD || type === "X";
}

function joined(messages: readonly Message[]): Buffer {
  return Buffer.concat(messages.map(({ bytes }) => bytes));
}

/** The statement of a Query or a Parse, or the values of a Bind. */
function textsOf({ type, body }: Message): string[] {
  if (type === QUERY) return [body.toString("utf8", 0, body.length - 1)];
  if (type === PARSE) return [body.toString("utf8").split("\0")[1] ?? ""];
  if (type !== BIND) return [];
  let at = body.indexOf(0, body.indexOf(0) + 1) + 1;
  at += 2 + 2 * body.readUInt16BE(at);
  const values: string[] = [];
  const count = body.readUInt16BE(at);
  at += 2;
  for (let value = 0; value < count; value += 1) {
    const length = body.readInt32BE(at);
    values.push(body.toString("utf8", at + 4, at + 4 + Math.max(0, length)));
    at += 4 + Math.max(0, length);
  }
  return values;
}

class Splitter {
  rest: Buffer = Buffer.alloc(0);
  readonly #isClient: boolean;
  /** The first messages of a client have no type, and the answer about TLS is one letter. */
  #isTyped: boolean;

  constructor(isClient: boolean) {
    this.#isClient = isClient;
    this.#isTyped = !isClient;
  }

  push(chunk: Buffer): readonly Message[] {
    this.rest = Buffer.concat([this.rest, chunk]);
    const messages: Message[] = [];
    for (let message = this.#next(); message; message = this.#next()) messages.push(message);
    return messages;
  }

  #next(): Message | null {
    const { rest } = this;
    const head = this.#isTyped ? 1 : 0;
    if (rest.length < head + 4) return null;
    const length = head + rest.readUInt32BE(head);
    if (rest.length < length) return null;
    const bytes = rest.subarray(0, length);
    if (!this.#isTyped && !UNTYPED.has(bytes.readUInt32BE(4))) throw new Error("not Postgres");
    // A client that asks for TLS goes on without a type; the tests use none.
    const type = this.#isTyped ? bytes.toString("latin1", 0, 1) : "";
    if (this.#isClient) this.#isTyped = true;
    this.rest = rest.subarray(length);
    return { type, bytes, body: bytes.subarray(head + 4) };
  }
}
