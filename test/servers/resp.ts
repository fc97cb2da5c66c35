import { once } from "node:events";
import { connect, type Socket } from "node:net";

// The part of the Redis protocol that is needed to set up and inspect servers without a client
// library, and to split a stream into messages in the proxy.

export type Reply = string | number | boolean | null | RespError | readonly Reply[];

export class RespError extends Error {
  override readonly name = "RespError";
}

export interface RespMessage {
  /** The first character: "+", "$", "*", in RESP3 also "%", ">" and others. */
  readonly type: string;
  readonly value: Reply;
  /** Where the next message starts. */
  readonly end: number;
}

/** Reads the message at `at`; undefined while it is incomplete. Understands RESP2 and RESP3. */
export function readMessage(bytes: Buffer, at = 0): RespMessage | undefined {
  const lineEnd = bytes.indexOf("\r\n", at);
  if (lineEnd === -1) return undefined;
  const type = bytes.toString("latin1", at, at + 1);
  const line = bytes.toString("utf8", at + 1, lineEnd);
  const end = lineEnd + 2;
  switch (type) {
    case "+":
    case ",":
    case "(":
      return { type, value: line, end };
    case "-":
      return { type, value: new RespError(line), end };
    case ":":
      return { type, value: Number(line), end };
    case "#":
      return { type, value: line === "t", end };
    case "_":
      return { type, value: null, end };
    case "$":
    case "=":
    case "!":
      return readBulk(bytes, type, Number(line), end);
    case "*":
    case "~":
    case ">":
      return readElements(bytes, type, Number(line), end);
    case "%":
      return readElements(bytes, type, 2 * Number(line), end);
    default:
      throw new Error(
        `not a RESP message: ${JSON.stringify(bytes.toString("latin1", at, lineEnd))}`,
      );
  }
}

function readBulk(bytes: Buffer, type: string, length: number, at: number) {
  if (length === -1) return { type, value: null, end: at };
  const end = at + length + 2;
  if (bytes.length < end) return undefined;
  const text = bytes.toString("utf8", at, at + length);
  return { type, value: type === "!" ? new RespError(text) : text, end };
}

function readElements(bytes: Buffer, type: string, count: number, at: number) {
  if (count === -1) return { type, value: null, end: at };
  const value: Reply[] = [];
  let end = at;
  while (value.length < count) {
    const element = readMessage(bytes, end);
    if (!element) return undefined;
    value.push(element.value);
    end = element.end;
  }
  return { type, value, end };
}

/** The bytes of a command. */
export function encodeCommand(args: readonly (string | number)[]): Buffer {
  const parts = args.map((arg) => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`);
  return Buffer.from(`*${args.length}\r\n${parts.join("")}`);
}

interface Pending {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

/** One connection. Replies come in order; an error reply rejects with RespError. */
export class RespClient implements AsyncDisposable {
  readonly #socket: Socket;
  readonly #pending: Pending[] = [];
  #received: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#receive(chunk));
    socket.on("timeout", () => {
      if (this.#pending.length > 0) socket.destroy(new Error("no reply in time"));
    });
    // "close" follows every failure and rejects commands without a reply.
    let failure: Error | undefined;
    socket.on("error", (error) => {
      failure = error;
    });
    socket.on("close", () => {
      const error = failure ?? new Error("the connection was closed");
      for (const { reject } of this.#pending.splice(0)) reject(error);
    });
  }

  /** `timeoutMs`: the longest silence while a command is unanswered; default 10 000. */
  static async connect(
    port: number,
    { timeoutMs = 10_000 }: { readonly timeoutMs?: number } = {},
  ): Promise<RespClient> {
    const socket = connect({ port, host: "127.0.0.1", timeout: timeoutMs });
    await once(socket, "connect");
    return new RespClient(socket);
  }

  send(...args: readonly (string | number)[]): Promise<Reply> {
    return this.sendEncoded(encodeCommand(args));
  }

  /** Sends an encoded command. */
  sendEncoded(command: Buffer): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new Error("the connection was closed"));
      this.#pending.push({ resolve, reject });
      this.#socket.write(command);
    });
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    for (;;) {
      const message = readMessage(this.#received);
      if (!message) return;
      this.#received = this.#received.subarray(message.end);
      const pending = this.#pending.shift();
      if (message.value instanceof RespError) pending?.reject(message.value);
      else pending?.resolve(message.value);
    }
  }

  async close(): Promise<void> {
    if (this.#socket.closed) return;
    const closed = once(this.#socket, "close");
    this.#socket.destroy();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** One command on a connection of its own. */
export async function ask(port: number, ...args: readonly (string | number)[]): Promise<Reply> {
  const client = await RespClient.connect(port);
  try {
    return await client.send(...args);
  } finally {
    await client.close();
  }
}
