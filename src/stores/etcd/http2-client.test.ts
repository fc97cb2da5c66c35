/** The client of a URL, with members that answer as a test says. */
import { once } from "node:events";
import { createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import {
  type AddressInfo,
  connect as connectTcp,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Unreadable } from "../../foreign-data.js";
import { networkPort } from "../../time/port.js";
import type { Timers } from "../../time/timers.js";
import { EtcdCalls } from "./etcd-calls.js";
import { NotConnectedError } from "./grpc-connection.js";
import { Http2Client } from "./http2-client.js";

type Answer = (stream: ServerHttp2Stream, path: string, token: string | undefined) => void;

const KEY = { key: Buffer.from("key") };
/** `deleted` is 7. */
const DELETED = framed(Buffer.from([0x10, 7]));
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
  const server = createServer();
  server.on("session", (session) => endings.push(() => session.destroy()));
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    answer(stream, String(headers[":path"]), headers.token as string | undefined);
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

/** Pings are sent and missed sooner than in a program. The first member is asked first. */
function client(members: readonly string[], name = ""): Http2Client {
  const real = networkPort();
  const after: Timers["after"] = (delayMs, task, keepAlive) =>
    real.timers.after(Math.min(delayMs, 1_000), task, keepAlive);
  const random = { ...real.random, fraction: () => 0 };
  const port = { ...real, random, timers: { ...real.timers, after } };
  const user = name === "" ? null : { name, password: "secret" };
  const made = new Http2Client({ members, tls: null, user }, port);
  endings.push(() => made.close());
  return made;
}

function reply(stream: ServerHttp2Stream, parts: readonly Buffer[], trailers: object = OK): void {
  stream.respond({ ":status": 200 }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ ...trailers }));
  for (const part of parts) stream.write(part);
  stream.end();
}

function refuse(stream: ServerHttp2Stream, code: number, message: string): void {
  const status = { "grpc-status": String(code), "grpc-message": encodeURIComponent(message) };
  stream.respond({ ":status": 200, ...status }, { endStream: true });
}

describe("a call", () => {
  it("is answered by one message, in however many parts it comes", async () => {
    const parts = [...DELETED].map((byte) => Buffer.from([byte]));
    const { kv } = client([await member((stream) => reply(stream, parts))]);
    expect((await kv.deleteRange(KEY)).deleted).toBe("7");
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
    [
      "a size that no message has",
      (stream) => reply(stream, [Buffer.from([0, 255, 255, 255, 255])]),
      Unreadable,
    ],
  ])("rejects on %s", async (_, answer, expected) => {
    const { kv } = client([await member(answer)]);
    const error = await kv.deleteRange(KEY).then(String, (reason) => reason);
    if (expected === Unreadable) expect(error).toBeInstanceOf(Unreadable);
    else expect(error).toMatchObject(expected);
  });

  it("says why there is no connection", async () => {
    const server = createTcpServer();
    const address = await listening(server);
    server.close();
    await once(server, "close");
    const { kv } = client([address]);
    const error = await kv.deleteRange(KEY).then(String, (reason) => reason);
    expect(error).toBeInstanceOf(NotConnectedError);
    expect(error.message).toBe(`connect ECONNREFUSED ${address}`);
  });

  it("whose time is over is cancelled at its member, and counted once", async () => {
    let asked = 0;
    let cancelled: Promise<unknown> = Promise.resolve();
    const address = await member((stream) => {
      asked += 1;
      if (asked === 1) reply(stream, [DELETED]);
      else cancelled = once(stream, "close");
    });
    const calls = new EtcdCalls(client([address]), networkPort(), "");
    await calls.delete(KEY.key, 10_000);
    const sendings = { count: 0 };
    await expect(calls.delete(KEY.key, 50, sendings)).rejects.toThrow("No answer within 50 ms.");
    await cancelled;
    expect(sendings.count).toBe(1);
  });
});

it("a peer that is gone without a sign is found by a ping, and reached anew", async () => {
  const address = await member((stream) => reply(stream, [DELETED]));
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
  const calls = new EtcdCalls(client([await listening(proxy)]), networkPort(), "");
  await calls.delete(KEY.key, 10_000);
  const closed = once(sockets[0] as Socket, "close");
  for (const socket of sockets) socket.unpipe();
  await expect(calls.delete(KEY.key, 50)).rejects.toThrow("No answer within 50 ms.");
  // The proxy reads on, to hear of the end.
  for (const socket of sockets) socket.resume();
  await closed;
  expect((await calls.delete(KEY.key, 10_000)).deleted).toBe("7");
});

describe("the next member is asked", () => {
  const good = (): Promise<string> => member((stream) => reply(stream, [DELETED]));

  it("by the same call where nothing was sent: the first does not answer at all", async () => {
    const { kv } = client([await silent(), await good()]);
    expect((await kv.deleteRange(KEY)).deleted).toBe("7");
  });

  it.each<[string, Answer]>([
    ["is unavailable", (stream) => refuse(stream, 14, "etcdserver: no leader")],
    ["drops the connection", (stream) => stream.session?.destroy()],
  ])("by the next call after the first %s", async (_, answer) => {
    let asked = 0;
    const bad = await member((stream, path, token) => {
      asked += 1;
      answer(stream, path, token);
    });
    const { kv } = client([bad, await good()]);
    const both = [kv.deleteRange(KEY), kv.deleteRange(KEY)];
    for (const result of await Promise.allSettled(both)) expect(result.status).toBe("rejected");
    const askedBefore = asked;
    expect((await kv.deleteRange(KEY)).deleted).toBe("7");
    expect(asked).toBe(askedBefore);
  });

  it("not after a refusal, which every member would repeat", async () => {
    let asked = 0;
    const strict = await member((stream) => {
      asked += 1;
      refuse(stream, 7, "etcdserver: permission denied");
    });
    const { kv } = client([strict, await good()]);
    await expect(kv.deleteRange(KEY)).rejects.toThrow("permission denied");
    await expect(kv.deleteRange(KEY)).rejects.toThrow("permission denied");
    expect(asked).toBe(2);
  });
});

describe("a user", () => {
  const tokens = ["first", "second"];

  it("logs in once, and again when etcd has forgotten the token", async () => {
    const seen: string[] = [];
    let logins = 0;
    const address = await member((stream, path, token) => {
      if (path.endsWith("/Authenticate")) {
        const text = Buffer.from(tokens[logins++] ?? "");
        reply(stream, [framed(Buffer.concat([Buffer.from([0x12, text.length]), text]))]);
      } else {
        seen.push(token ?? "none");
        if (logins === 1 && seen.length > 2) refuse(stream, 16, "etcdserver: invalid auth token");
        else reply(stream, [DELETED]);
      }
    });
    const calls = new EtcdCalls(client([address], "app"), networkPort(), "");
    const sendings = { count: 0 };
    await Promise.all([calls.delete(KEY.key, 10_000), calls.delete(KEY.key, 10_000)]);
    await calls.delete(KEY.key, 10_000, sendings);
    expect(seen).toEqual(["first", "first", "first", "second"]);
    expect(sendings.count).toBe(2);
  });

  it("whose token is always refused is told so", async () => {
    const address = await member((stream, path) => {
      if (path.endsWith("/Authenticate")) reply(stream, [framed(Buffer.from([0x12, 1, 0x61]))]);
      else refuse(stream, 16, "etcdserver: invalid auth token");
    });
    const { kv } = client([address], "app");
    await expect(kv.deleteRange(KEY)).rejects.toThrow("invalid auth token");
  });
});

describe("a stream", () => {
  it("tells every message, and its end once", async () => {
    const address = await member((stream) => {
      // Two messages in one part, and the third one in two parts.
      const keptAlive = framed(Buffer.from([0x18, 5]));
      reply(stream, [
        Buffer.concat([keptAlive, keptAlive, keptAlive.subarray(0, 6)]),
        keptAlive.subarray(6),
      ]);
    });
    const stream = await client([address]).leaseClient.leaseKeepAlive();
    const told: unknown[] = [];
    stream.on("data", ({ TTL }) => told.push(TTL));
    stream.on("error", (error) => told.push(error));
    await new Promise<void>((resolve) => stream.on("end", resolve));
    stream.cancel();
    expect(told).toEqual(["5", "5", "5"]);
  });

  it.each<[string, Answer, object]>([
    ["the status", (stream) => refuse(stream, 13, "broken"), { code: 13 }],
    ["the end of its connection", (stream) => stream.session?.destroy(), { name: "Error" }],
    ["garbage", (stream) => reply(stream, [framed(Buffer.from([8]))]), { name: "Unreadable" }],
  ])("tells %s as its error, once", async (_, answer, expected) => {
    const stream = await client([await member(answer)]).watchClient.watch();
    const errors: Error[] = [];
    await new Promise<void>((resolve) => {
      stream.on("error", (error) => {
        errors.push(error);
        setImmediate(resolve);
      });
    });
    expect(errors).toMatchObject([expected]);
  });

  it("tells nothing after it was cancelled", async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const address = await member((stream) => {
      stream.respond({ ":status": 200 });
      closed = once(stream, "close");
    });
    const made = client([address]);
    const stream = await made.watchClient.watch();
    stream.on("data", () => expect.unreachable());
    stream.on("error", () => expect.unreachable());
    stream.on("end", () => expect.unreachable());
    stream.write({ cancel_request: { watch_id: 1 } });
    stream.end();
    stream.cancel();
    made.close();
    await closed;
  });
});
