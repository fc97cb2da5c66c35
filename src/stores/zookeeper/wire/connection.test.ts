import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Garbage, seededGarbage } from "../../../../test/fixtures/garbage.js";
import { ManualRuntime, settled } from "../../../../test/fixtures/manual-runtime.js";
import { ReplayServer } from "../../../../test/fixtures/replay-server.js";
import {
  CONVERSATION,
  converse,
  plain,
  type Recording,
} from "../../../../test/fixtures/zookeeper-conversation.js";
import type { Runtime } from "../../../time/runtime.js";
import type { Address } from "../../store-url.js";
import { Connection } from "./connection.js";
import { exists } from "./requests.js";

const root = join(import.meta.dirname, "../../../..");
const file = join(root, "test/fixtures/zookeeper-conversation.json");
const recording: Recording = JSON.parse(readFileSync(file, "utf8"));

function open(address: Address, runtime: Runtime = new ManualRuntime()): Connection {
  const { credentials, timeoutMs } = CONVERSATION;
  const settings = { tls: null, chroot: "", credentials };
  return new Connection(address, settings, { key: null, timeoutMs }, { openMs: 5_000, runtime });
}

describe("a recorded conversation", () => {
  it("is held again, byte by byte", async () => {
    await using server = await ReplayServer.start(recording);
    const results = await converse(open(server.address));
    expect(plain(results)).toEqual(recording.results);
    expect(server.deviation).toBeNull();
  });

  it("is the same when every byte arrives alone", async () => {
    await using server = await ReplayServer.start(recording, {
      send: (socket, frame) => {
        for (const byte of frame) socket.write(Buffer.of(byte));
      },
    });
    expect(plain(await converse(open(server.address)))).toEqual(recording.results);
  });
});

describe("a number that has no place in a request", () => {
  it("throws before the connection is made", () => {
    const settings = {
      tls: null,
      chroot: "",
      credentials: [],
      openSocket: () => expect.unreachable("a socket was opened"),
    };
    const request = { key: null, timeoutMs: 2 ** 31 };
    const runtime = new ManualRuntime();
    const address = { host: "127.0.0.1", port: 2181 };
    const options = { openMs: 5_000, runtime };
    expect(() => new Connection(address, settings, request, options)).toThrow(RangeError);
    expect(runtime.alarms).toBe(0);
  });
});

describe("broken frames", () => {
  const replies = recording.frames.filter(({ from }) => from === "server").length;

  function damaged(frame: Buffer, garbage: Garbage): Buffer {
    const bytes = Buffer.from(frame);
    const at = garbage.whole(0, bytes.length - 1);
    const number = garbage.pick([0, 1, -1, -2, 2 ** 31 - 1, -(2 ** 31), 255, 1_000_000]);
    switch (garbage.pick(["flip", "flip", "cut", "number", "longer", "twice"])) {
      case "flip":
        bytes[at] = garbage.whole(0, 255);
        return bytes;
      case "cut":
        return bytes.subarray(0, at);
      case "number":
        bytes.writeInt32BE(number, Math.min(at, bytes.length - 4));
        return bytes;
      case "longer":
        bytes.writeInt32BE(bytes.length - 4 + 8, 0);
        return Buffer.concat([bytes, Buffer.alloc(8, garbage.whole(0, 255))]);
      default:
        return Buffer.concat([bytes, bytes]);
    }
  }

  // Each trial damages one frame of the server, which then ends the connection.
  it("end every request with a reply or a defined error", async () => {
    const garbage = seededGarbage();
    const codes = new Set<string>();
    for (let trial = 0; trial < 250; trial += 1) {
      const broken = garbage.whole(0, replies - 1);
      await using server = await ReplayServer.start(recording, {
        send: (socket, frame, at) => {
          if (at < broken) socket.write(frame);
          else if (at === broken) socket.end(damaged(frame, garbage));
        },
      });
      const connection = open(server.address);
      const results = await converse(connection).catch((error) => [error]);
      const { code, outcome } = await connection.ended;
      const clue = `seed ${garbage.seed}, trial ${trial}, frame ${broken}`;
      expect(["unknown", "refused"], clue).toContain(outcome);
      expect(code, clue).toMatch(/^[a-z_]+$/);
      codes.add(code);
      const last = results.at(-1);
      if (last instanceof Error) expect(last, clue).toMatchObject({ name: "ZookeeperError" });
      await expect(connection.send(exists("/a")), clue).rejects.toMatchObject({
        outcome: "not_sent",
      });
    }
    expect([...codes]).toEqual(expect.arrayContaining(["unreadable", "connection_lost"]));
  });
});

describe("a connection", () => {
  const SESSION = Buffer.from(
    recording.frames.find(({ from }) => from === "server")?.hex ?? "",
    "hex",
  );
  const PING = "00000008fffffffe0000000b";
  const PONG = Buffer.from("00000010fffffffe000000000000000000000000", "hex");
  const noNode = (xid: number): Buffer => {
    const reply = Buffer.from(PONG);
    reply.writeInt32BE(xid, 4);
    reply.writeInt32BE(-101, 16);
    return reply;
  };
  const { timeoutMs } = CONVERSATION;
  const beatMs = timeoutMs / 6;
  let server: Server;
  let client: Socket;
  let received: string[];
  let runtime: ManualRuntime;
  let connection: Connection;

  beforeEach(async () => {
    received = [];
    server = createServer((socket) => {
      client = socket;
      socket.once("data", () => {
        socket.write(SESSION);
        socket.on("data", (chunk) => received.push(chunk.toString("hex")));
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    runtime = new ManualRuntime();
    const { port: number } = server.address() as { port: number };
    const settings = { tls: null, chroot: "", credentials: [] };
    const limits = { openMs: 5_000, runtime };
    const address = { host: "127.0.0.1", port: number };
    connection = new Connection(address, settings, { key: null, timeoutMs }, limits);
    await connection.opened;
  });

  afterEach(() => {
    connection.close();
    server.close();
  });

  /** Resolves when the server has as many messages. */
  const pings = (count: number) =>
    expect.poll(() => received.join("").split(PING).length - 1).toBe(count);

  it("takes the last zxid from replies: a transaction may have several events", async () => {
    const event = Buffer.from(
      "00000021ffffffff0000000000000064000000000000000200000003000000052f74616c6b",
      "hex",
    );
    const request = connection.send(exists("/a"));
    const reply = noNode(1);
    reply.writeBigInt64BE(99n, 8);
    client.write(Buffer.concat([event, reply]));
    await request;
    expect(connection.lastZxid).toBe(99n);
  });

  it.each([
    ["to the second request first", [2, 1]],
    ["to a request that was never sent", [3]],
    ["twice", [1, 1]],
  ])("ends with a whole reply %s, and settles no request by it", async (_, xids) => {
    const requests = [connection.send(exists("/a")), connection.send(exists("/b"))];
    const outcomes = Promise.allSettled(requests);
    client.write(Buffer.concat(xids.map(noNode)));
    expect(await connection.ended).toMatchObject({ code: "unreadable", outcome: "unknown" });
    const isTwice = xids[0] === 1;
    const unread = { status: "rejected", reason: { code: "unreadable", outcome: "unknown" } };
    const answered = { status: "fulfilled", value: { stat: null } };
    expect(await outcomes).toMatchObject([isTwice ? answered : unread, unread]);
  });

  it("keeps no process alive", () => {
    expect(runtime.alarms).toBe(1);
    expect(runtime.keepsAlive).toBe(false);
  });

  it("sends a ping at least every third of the time-out", async () => {
    for (let count = 1; count <= 5; count += 1) {
      await runtime.advance(timeoutMs / 3);
      await pings(count);
      // The answer to a request shows that the answer to the ping before it has arrived.
      const request = connection.send(exists("/a"));
      client.write(Buffer.concat([PONG, noNode(count)]));
      expect(await request).toMatchObject({ stat: null });
    }
    expect(connection.isOpen).toBe(true);
  });

  it("ends after two thirds of the time-out without an answer", async () => {
    const silent = { code: "silent", outcome: "unknown" };
    const ended = expect(connection.send(exists("/a"))).rejects.toMatchObject(silent);
    await runtime.advance(4 * beatMs - 1);
    expect(connection.isOpen).toBe(true);
    await runtime.advance(1);
    await ended;
    expect(runtime.alarms).toBe(0);
  });

  it("counts one beat for the time in which the process was stopped", async () => {
    runtime.block(10 * timeoutMs);
    await runtime.advance(0);
    expect(connection.isOpen).toBe(true);
    await runtime.advance(3 * beatMs);
    expect(connection.isOpen).toBe(false);
    await settled();
  });
});
