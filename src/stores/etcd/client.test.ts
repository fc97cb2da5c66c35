/** The client of a URL, with members that answer as a test says. */
import dns from "node:dns";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import {
  type AddressInfo,
  connect as connectTcp,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isQuick } from "../../../test/fixtures/depth.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { Unreadable } from "../../events/foreign-data.js";
import { networkRuntime } from "../../time/runtime.js";
import type { Timers } from "../../time/timers.js";
import { EtcdCalls, type Sending } from "./calls.js";
import { Http2Client } from "./client.js";
import type { StreamListener } from "./wire/grpc.js";
import { NotConnectedError } from "./wire/http2.js";
import {
  DELETE,
  KEEP_ALIVE,
  type LeaseReply,
  REVOKE,
  WATCH,
  type WatchReply,
} from "./wire/messages.js";

type Answer = (stream: ServerHttp2Stream, path: string, headers: IncomingHttpHeaders) => void;

/** The types of Node lack the method. */
type NumberedSession = ClientHttp2Session & { setNextStreamID(id: number): void };

const KEY = { key: Buffer.from("key") };
const SENDING: Sending = { start: (send) => void send() };
/** An empty header; `deleted` is 7. */
const DELETED = framed(Buffer.from([0x0a, 0, 0x10, 7]));
const OK = { "grpc-status": "0" };

const endings: (() => void)[] = [];
afterEach(() => {
  for (const end of endings.splice(0)) end();
});

function framed(message: Buffer, flag = 0): Buffer {
  const prefix = Buffer.from([flag, 0, 0, 0, 0]);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

async function listening(server: Server | Http2Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  endings.push(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function member(answer: Answer): Promise<string> {
  const server = createServer({ maxSessionMemory: 1_000 });
  server.on("session", (session) => endings.push(() => session.destroy()));
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    answer(stream, String(headers[":path"]), headers);
  });
  return listening(server);
}

/** Accepts connections and says nothing. */
function silent(): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    endings.push(() => socket.destroy());
  });
  return listening(server);
}

/** Its time passes only as the test says. The first member is asked first. */
function client(members: readonly string[], { name = "", time = new ManualRuntime() } = {}) {
  const { clock, timers } = time;
  const port = { clock, timers, random: { ...time.random, fraction: () => 0 } };
  const user = name === "" ? null : { name, password: "secret" };
  const made = new Http2Client({ members, tls: null, user }, port);
  endings.push(() => made.close());
  return made;
}

function deleteKey(made: Http2Client): Promise<{ readonly deleted: bigint }> {
  return made.call(DELETE, KEY, SENDING);
}

/** A stream of watches, and its end. */
async function watching(made: Http2Client, more: Partial<StreamListener<WatchReply>> = {}) {
  let end: (error: Error | null) => void = () => {};
  const ended = new Promise<Error | null>((resolve) => {
    end = resolve;
  });
  const stream = await made.openStream(WATCH, { onReply: () => {}, onEnd: end, ...more });
  return { stream, ended };
}

/** The connection that a call uses. */
async function sessionOf(call: () => Promise<unknown>): Promise<NumberedSession> {
  const other = connectHttp2(`http://${await silent()}`);
  other.on("error", () => {});
  endings.push(() => other.destroy());
  const request = vi.spyOn(Object.getPrototypeOf(other) as ClientHttp2Session, "request");
  try {
    await call();
    return request.mock.contexts[0] as NumberedSession;
  } finally {
    request.mockRestore();
  }
}

function reply(stream: ServerHttp2Stream, parts: readonly Buffer[], trailers: object = OK): void {
  stream.respond({ ":status": 200 }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ ...trailers }));
  for (const part of parts) stream.write(part);
  stream.end();
}

function logIn(stream: ServerHttp2Stream, token = ""): void {
  const text = Buffer.from(token);
  reply(stream, [framed(Buffer.concat([Buffer.from([0x0a, 0, 0x12, text.length]), text]))]);
}

function refuse(stream: ServerHttp2Stream, code: number, message: string): void {
  const status = { "grpc-status": String(code), "grpc-message": encodeURIComponent(message) };
  stream.respond({ ":status": 200, ...status }, { endStream: true });
}

describe("a call", () => {
  it("is answered by one message, in however many parts it comes", async () => {
    const parts = [...DELETED].map((byte) => Buffer.from([byte]));
    const made = client([await member((stream) => reply(stream, parts))]);
    expect((await deleteKey(made)).deleted).toBe(7n);
  });

  it.each<[string, Answer, object]>([
    [
      "the words of a refusal",
      (stream) => refuse(stream, 7, "etcdserver: permission denied – ü"),
      { code: 7, message: "etcdserver: permission denied – ü" },
    ],
    [
      "a refusal after a message",
      (stream) => reply(stream, [DELETED], { "grpc-status": "9", "grpc-message": "no%20space" }),
      { code: 9, message: "no space" },
    ],
    ["a stream without a status", (stream) => stream.close(), { name: "Error" }],
    ["a status without a message", (stream) => reply(stream, []), { name: "Error" }],
    [
      "an answer of something else",
      (stream) => stream.respond({ ":status": 503 }, { endStream: true }),
      { message: "the answer has the HTTP status 503" },
    ],
    [
      "a message that ends early",
      (stream) => reply(stream, [framed(Buffer.from([8]))]),
      Unreadable,
    ],
    [
      "a compressed message",
      (stream) => reply(stream, [framed(Buffer.from([0x10, 7]), 1)]),
      Unreadable,
    ],
    ["a second message", (stream) => reply(stream, [DELETED, DELETED]), Unreadable],
    [
      "bytes after the message",
      (stream) => reply(stream, [DELETED, Buffer.from([0, 0])]),
      Unreadable,
    ],
    ["an empty message", (stream) => reply(stream, [framed(Buffer.alloc(0))]), Unreadable],
    [
      "a message without a header",
      (stream) => reply(stream, [framed(Buffer.from([0x10, 7]))]),
      Unreadable,
    ],
    [
      "a size that no message has",
      (stream) => reply(stream, [Buffer.from([0, 255, 255, 255, 255])]),
      Unreadable,
    ],
  ])("rejects on %s", async (_, answer, expected) => {
    const made = client([await member(answer)]);
    const error = await deleteKey(made).then(String, (reason) => reason);
    if (expected === Unreadable) expect(error).toBeInstanceOf(Unreadable);
    else expect(error).toMatchObject(expected);
  });

  it("copies the parts of a large message once", async () => {
    // A field that the reply does not have, of 1 MB.
    const unknown = Buffer.concat([Buffer.from([0x7a, 0x80, 0x80, 0x40]), Buffer.alloc(2 ** 20)]);
    const large = framed(Buffer.concat([DELETED.subarray(5), unknown]));
    const made = client([await member((stream) => reply(stream, [large]))]);
    const concat = vi.spyOn(Buffer, "concat");
    try {
      expect((await deleteKey(made)).deleted).toBe(7n);
      expect(concat.mock.calls.length).toBeLessThan(4);
    } finally {
      concat.mockRestore();
    }
  });

  it("that cannot be written is not begun", async () => {
    let asked = 0;
    const address = await member((stream) => {
      asked += 1;
      reply(stream, [DELETED]);
    });
    const made = client([address]);
    await deleteKey(made);
    await expect(made.call(REVOKE, { id: "no number" as never }, SENDING)).rejects.toThrow(
      SyntaxError,
    );
    await deleteKey(made);
    expect(asked).toBe(2);
  });

  // Fewer calls would stay below Node's default limit, and this many take seconds.
  it.skipIf(isQuick)("has room beside 20,000 others", async () => {
    const made = client([await member((stream) => reply(stream, [DELETED]))]);
    const calls = Array.from({ length: 20_000 }, () => deleteKey(made));
    await Promise.all(calls);
  });

  it("finds its connection after the event loop was blocked", async () => {
    const time = new ManualRuntime();
    const made = client([await member((stream) => reply(stream, [DELETED]))], { time });
    const deleted = deleteKey(made);
    time.block(10_000);
    await time.advance(0);
    expect((await deleted).deleted).toBe(7n);
  });

  it("opens another connection after the last number of a stream was used", async () => {
    const address = await member((stream) => reply(stream, [DELETED]));
    const made = client([address]);
    const session = await sessionOf(() => deleteKey(made));
    session.setNextStreamID(2 ** 31 - 1);
    await deleteKey(made);
    await expect(deleteKey(made)).rejects.toThrow("No stream ID is available");
    expect((await deleteKey(made)).deleted).toBe(7n);
  });

  it("says why there is no connection", async () => {
    const server = createTcpServer();
    const address = await listening(server);
    server.close();
    await once(server, "close");
    const made = client([address]);
    const error = await deleteKey(made).then(String, (reason) => reason);
    expect(error).toBeInstanceOf(NotConnectedError);
    expect(error.message).toBe(`connect ECONNREFUSED ${address}`);
  });

  it("says why there is no connection to a host with several addresses", async () => {
    const server = createTcpServer();
    const [, port] = (await listening(server)).split(":");
    server.close();
    await once(server, "close");
    const addresses = ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 }));
    type Found = (error: null, addresses: readonly object[]) => void;
    const lookUp = (_host: string, _options: object, found: Found): void =>
      setImmediate(found, null, addresses) as never;
    const spy = vi.spyOn(dns, "lookup").mockImplementation(lookUp as never);
    try {
      const made = client([`etcd.example:${port}`]);
      await expect(deleteKey(made)).rejects.toThrow(`connect ECONNREFUSED etcd.example:${port}`);
    } finally {
      spy.mockRestore();
    }
  });

  it("whose time is over is cancelled at its member, and counted once", async () => {
    let asked = 0;
    let cancelled: Promise<unknown> = Promise.resolve();
    const address = await member((stream) => {
      asked += 1;
      if (asked === 1) reply(stream, [DELETED]);
      else cancelled = once(stream, "close");
    });
    const calls = new EtcdCalls(client([address]), networkRuntime(), "");
    await calls.delete(KEY.key, 10_000);
    const sendings = { count: 0 };
    await expect(calls.delete(KEY.key, 50, sendings)).rejects.toThrow("No answer within 50 ms.");
    await cancelled;
    expect(sendings.count).toBe(1);
  });
});

/** A way to a member, and its sockets. */
async function proxyTo(address: string): Promise<{ address: string; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const proxy = createTcpServer((near) => {
    const far = connectTcp(Number(address.split(":")[1]), "127.0.0.1");
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      sockets.push(socket);
      socket.on("error", () => {});
      endings.push(() => socket.destroy());
    }
  });
  return { address: await listening(proxy), sockets };
}

it("a peer that is gone without a sign is found by a ping, and reached anew", async () => {
  const { address, sockets } = await proxyTo(await member((stream) => reply(stream, [DELETED])));
  const time = new ManualRuntime();
  const calls = new EtcdCalls(client([address], { time }), networkRuntime(), "");
  await calls.delete(KEY.key, 10_000);
  const socket = sockets[0] as Socket;
  for (const one of sockets) one.unpipe();
  await expect(calls.delete(KEY.key, 50)).rejects.toThrow("No answer within 50 ms.");
  // The proxy reads on, to hear of the end. The ping is sent as soon as the stream is closed.
  for (const one of sockets) one.resume();
  await expect.poll(() => time.advance(5_000).then(() => socket.closed)).toBe(true);
  expect((await calls.delete(KEY.key, 10_000)).deleted).toBe(7n);
});

it("a peer that answers keeps its connection after a sleep or a blocked event loop", async () => {
  const { address, sockets } = await proxyTo(await member((stream) => reply(stream, [DELETED])));
  const real = networkRuntime();
  let sleptMs = 0;
  let isConnected = false;
  const clock = { ...real.clock, nowMs: () => real.clock.nowMs() + sleptMs };
  const limits = new Set<() => void>();
  let pings = 0;
  // With a connection, all timers but that of the next ping are limits of answers to pings.
  const after: Timers["after"] = (delayMs, task, keepAlive) => {
    if (!isConnected || delayMs === 10_000) return real.timers.after(delayMs, task, keepAlive);
    limits.add(task);
    pings += 1;
    return { cancel: () => limits.delete(task), keepAlive: () => {} };
  };
  const port = { ...real, clock, timers: { ...real.timers, after } };
  const made = new Http2Client({ members: [address], tls: null, user: null }, port);
  endings.push(() => made.close());
  const calls = new EtcdCalls(made, networkRuntime(), "");
  await calls.delete(KEY.key, 10_000);
  isConnected = true;
  for (const socket of sockets) socket.unpipe();
  for (const sent of [1, 2]) {
    await expect(calls.delete(KEY.key, 50)).rejects.toThrow("No answer within 50 ms.");
    await expect.poll(() => pings).toBe(sent);
    sleptMs += 60_000;
  }
  // The event loop was blocked: the limit is over before the answer is read.
  for (const limit of [...limits]) {
    limits.delete(limit);
    limit();
  }
  const [near, far] = sockets as [Socket, Socket];
  near.pipe(far).pipe(near);
  await expect.poll(() => limits.size).toBe(0);
  expect((await calls.delete(KEY.key, 10_000)).deleted).toBe(7n);
  expect(sockets).toHaveLength(2);
});

describe("a member that takes no new calls", () => {
  /** A watch, on a connection whose member has said that it goes away. */
  async function draining() {
    const { address, sockets } = await proxyTo(
      await member((stream, path) => {
        if (!path.endsWith("/Watch")) return reply(stream, [DELETED]);
        stream.respond({ ":status": 200 });
        stream.session?.goaway();
      }),
    );
    const time = new ManualRuntime();
    const made = client([address], { time });
    const { ended } = await watching(made);
    // The second connection shows that the first one is over.
    do await deleteKey(made).catch(() => {});
    while (sockets.length < 4);
    return { made, sockets, ended, time };
  }

  it("is found by a ping when it is gone without a sign", async () => {
    const { sockets, ended, time } = await draining();
    for (const socket of sockets.slice(0, 2)) socket.unpipe();
    await time.advance(15_000);
    await ended;
  });

  it("is left when the client is closed", async () => {
    const { made, ended } = await draining();
    made.close();
    await ended;
  });
});

describe("the next member is asked", () => {
  const good = (): Promise<string> => member((stream) => reply(stream, [DELETED]));

  it("by the same call where nothing was sent: the first does not answer at all", async () => {
    const time = new ManualRuntime();
    const made = client([await silent(), await good()], { time });
    const deleted = deleteKey(made);
    await time.advance(5_000);
    expect((await deleted).deleted).toBe(7n);
  });

  it.each<[string, Answer]>([
    ["is unavailable", (stream) => refuse(stream, 14, "etcdserver: no leader")],
    ["drops the connection", (stream) => stream.session?.destroy()],
  ])("by the next call after the first %s", async (_, answer) => {
    let asked = 0;
    const bad = await member((stream, path, headers) => {
      asked += 1;
      answer(stream, path, headers);
    });
    const made = client([bad, await good()]);
    const both = [deleteKey(made), deleteKey(made)];
    for (const result of await Promise.allSettled(both)) expect(result.status).toBe("rejected");
    const askedBefore = asked;
    expect((await deleteKey(made)).deleted).toBe(7n);
    expect(asked).toBe(askedBefore);
  });

  it("not after a refusal, which every member would repeat", async () => {
    let asked = 0;
    const strict = await member((stream) => {
      asked += 1;
      refuse(stream, 7, "etcdserver: permission denied");
    });
    const made = client([strict, await good()]);
    await expect(deleteKey(made)).rejects.toThrow("permission denied");
    await expect(deleteKey(made)).rejects.toThrow("permission denied");
    expect(asked).toBe(2);
  });
});

describe("a user", () => {
  const tokens = ["first", "second"];

  it.each([
    [16, "etcdserver: invalid auth token"],
    [3, "etcdserver: revision of auth store is old"],
  ])("logs in once, and again when etcd refuses the token: %i %s", async (code, words) => {
    const seen: string[] = [];
    let logins = 0;
    const address = await member((stream, path, { token }) => {
      if (path.endsWith("/Authenticate")) logIn(stream, tokens[logins++]);
      else {
        seen.push(String(token));
        if (logins === 1 && seen.length > 2) refuse(stream, code, words);
        else reply(stream, [DELETED]);
      }
    });
    const calls = new EtcdCalls(client([address], { name: "app" }), networkRuntime(), "");
    const sendings = { count: 0 };
    await Promise.all([calls.delete(KEY.key, 10_000), calls.delete(KEY.key, 10_000)]);
    await calls.delete(KEY.key, 10_000, sendings);
    expect(seen).toEqual(["first", "first", "first", "second"]);
    expect(sendings.count).toBe(2);
  });

  it("whose token is always refused is told so", async () => {
    const address = await member((stream, path) => {
      if (path.endsWith("/Authenticate")) logIn(stream, "a");
      else refuse(stream, 16, "etcdserver: invalid auth token");
    });
    const made = client([address], { name: "app" });
    await expect(deleteKey(made)).rejects.toThrow("invalid auth token");
  });

  it("logs in once more for all calls with an old token", async () => {
    let logins = 0;
    let first: ServerHttp2Stream | undefined;
    const old = "etcdserver: invalid auth token";
    const address = await member((stream, path, { token }) => {
      if (path.endsWith("/Authenticate")) logIn(stream, tokens[logins++]);
      else if (token === "first") {
        // The first call is refused after the login that the refusal of the second one causes.
        if (first) refuse(stream, 16, old);
        else first = stream;
      } else {
        reply(stream, [DELETED]);
        if (first && !first.headersSent) refuse(first, 16, old);
      }
    });
    const made = client([address], { name: "app" });
    await Promise.all([deleteKey(made), deleteKey(made)]);
    expect(logins).toBe(2);
  });

  it("logs in again after etcd ended a watch because its token is old", async () => {
    const seen: unknown[] = [];
    const address = await member((stream, path, { token }) => {
      if (path.endsWith("/Authenticate")) return logIn(stream, tokens[seen.length]);
      seen.push(token);
      refuse(stream, 16, "etcdserver: invalid auth token");
    });
    const made = client([address], { name: "app" });
    for (let count = 0; count < 2; count += 1) {
      await (await watching(made)).ended;
    }
    expect(seen).toEqual(tokens);
  });

  it("whose login a member does not answer logs in at the next member", async () => {
    const asked: ServerHttp2Stream[] = [];
    const stuck = await member((stream) => asked.push(stream));
    const good = await member((stream, path) => {
      if (path.endsWith("/Authenticate")) logIn(stream, "a");
      else reply(stream, [DELETED]);
    });
    const time = new ManualRuntime();
    const made = client([stuck, good], { name: "app", time });
    const refused = expect(deleteKey(made)).rejects.toThrow("No answer within 5000 ms.");
    await expect.poll(() => asked).toHaveLength(1);
    const cancelled = once(asked[0] as ServerHttp2Stream, "close");
    await time.advance(5_000);
    await refused;
    await cancelled;
    expect((await deleteKey(made)).deleted).toBe(7n);
  });
});

describe("a stream", () => {
  it("tells every message, and its end once", async () => {
    const address = await member((stream) => {
      // Two messages in one part, and the third one in two parts.
      const keptAlive = framed(Buffer.from([0x0a, 0, 0x18, 5]));
      reply(stream, [
        Buffer.concat([keptAlive, keptAlive, keptAlive.subarray(0, 6)]),
        keptAlive.subarray(6),
      ]);
    });
    const told: unknown[] = [];
    await new Promise<void>((resolve, reject) => {
      const listener = {
        onReply: ({ ttl }: LeaseReply) => told.push(ttl),
        onEnd: (error: Error | null) => (error ? reject(error) : resolve()),
      };
      void client([address]).openStream(KEEP_ALIVE, listener);
    });
    expect(told).toEqual([5n, 5n, 5n]);
  });

  it.each<[string, Answer, object]>([
    ["the status", (stream) => refuse(stream, 13, "broken"), { code: 13 }],
    ["the end of its connection", (stream) => stream.session?.destroy(), { name: "Error" }],
    ["garbage", (stream) => reply(stream, [framed(Buffer.from([8]))]), { name: "Unreadable" }],
  ])("tells %s as its error, once", async (_, answer, expected) => {
    const errors: (Error | null)[] = [];
    await new Promise<void>((resolve) => {
      void member(answer).then((address) =>
        watching(client([address]), {
          onEnd: (error) => {
            errors.push(error);
            setImmediate(resolve);
          },
        }),
      );
    });
    expect(errors).toMatchObject([expected]);
  });

  it("of watches ends where the member has no leader", async () => {
    const seen: unknown[] = [];
    const address = await member((stream, _, { hasleader }) => {
      seen.push(hasleader);
      refuse(stream, 14, "etcdserver: no leader");
    });
    await (await watching(client([address]))).ended;
    expect(seen).toEqual(["true"]);
  });

  it("tells nothing after it was closed", async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const address = await member((stream) => {
      stream.respond({ ":status": 200 });
      closed = once(stream, "close");
    });
    const made = client([address]);
    const { stream } = await watching(made, {
      onReply: () => expect.unreachable(),
      onEnd: () => expect.unreachable(),
    });
    stream.write({ cancelRequest: { watchId: 1n } });
    stream.close();
    made.close();
    await closed;
  });
});
