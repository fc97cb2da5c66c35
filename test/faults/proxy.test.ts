import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { encodeCommand, RespClient } from "../servers/resp.js";
import { waitUntil } from "../servers/wait-until.js";
import { startProxy } from "./proxy.js";

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});

beforeEach(async () => {
  await redis.ask("FLUSHALL");
});

afterAll(() => redis.close());

function proxied(framing: "resp" | "none" = "none") {
  return startProxy({ targetPort: redis.port, framing });
}

function arrives(key: string): Promise<void> {
  const what = `${key} arrives at the server`;
  return waitUntil(async () => (await redis.ask("GET", key)) === "1", { what });
}

it("passes on all bytes and counts them", async () => {
  await using proxy = await proxied("resp");
  await using client = await RespClient.connect(proxy.port);
  const long = "x".repeat(300_000);
  const commands = [
    ["SET", "a", long],
    ["GET", "a"],
  ] as const;
  const replies = await Promise.all(commands.map((command) => client.send(...command)));
  expect(replies).toEqual(["OK", long]);
  const [set, get] = commands.map((command) => encodeCommand(command).length);
  expect(proxy.counters).toEqual({
    connections: 1,
    requests: { chunks: 2, bytes: (set ?? 0) + (get ?? 0) },
    replies: { chunks: 2, bytes: "+OK\r\n$300000\r\n\r\n".length + 300_000 },
  });
});

it("closes a connection of another protocol and serves the other connections", async () => {
  await using proxy = await proxied("resp");
  const stranger = connect(proxy.port, "127.0.0.1");
  stranger.on("error", () => {});
  stranger.write("GET /members HTTP/1.1\r\n\r\n");
  await once(stranger, "close");
  await using client = await RespClient.connect(proxy.port);
  expect(await client.send("PING")).toBe("PONG");
});

it("ends one side when the other side ends", async () => {
  await using proxy = await proxied();
  const client = await RespClient.connect(proxy.port);
  await client.send("PING");
  await client.close();
  await waitUntil(() => proxy.links.size === 0, { what: "the link is closed" });

  await using killed = await RespClient.connect(proxy.port);
  const blocked = killed.send("BLPOP", "never", 0);
  blocked.catch(() => undefined);
  await waitUntil(() => proxy.counters.requests.chunks === 2, { what: "the request blocks" });
  await redis.ask("CLIENT", "KILL", "TYPE", "normal");
  await expect(blocked).rejects.toThrow("closed");
});

it("delays one direction and keeps the order", async () => {
  await using proxy = await proxied();
  await using client = await RespClient.connect(proxy.port);
  proxy.delay("replies", 100);
  const startedMs = performance.now();
  const slow = client.send("INCR", "n");
  await waitUntil(() => proxy.counters.replies.chunks === 1, { what: "a reply is under way" });
  proxy.delay("replies", 0);
  expect(await Promise.all([slow, client.send("INCR", "n")])).toEqual([1, 2]);
  expect(performance.now() - startedMs).toBeGreaterThan(98);
});

it("loses replies but not requests, until it heals", async () => {
  await using proxy = await proxied();
  await using client = await RespClient.connect(proxy.port);
  proxy.blackhole("replies");
  const unanswered = client.send("SET", "a", 1);
  unanswered.catch(() => undefined);
  await arrives("a");
  await proxy.heal();
  await expect(unanswered).rejects.toThrow("ECONNRESET");
  await using next = await RespClient.connect(proxy.port);
  expect(await next.send("GET", "a")).toBe("1");
});

it("delivers stalled requests after the client has disconnected", async () => {
  await using proxy = await proxied();
  const client = await RespClient.connect(proxy.port);
  await client.send("PING");
  proxy.stall("requests");
  client.send("SET", "a", 1).catch(() => undefined);
  await waitUntil(() => proxy.counters.requests.chunks === 2, { what: "the request is stalled" });
  await client.close();
  expect(await redis.ask("GET", "a")).toBeNull();
  await proxy.heal();
  await arrives("a");
});

it("lets stalled requests pass again, and other faults go on", async () => {
  await using proxy = await proxied();
  await using client = await RespClient.connect(proxy.port);
  proxy.stall("requests");
  proxy.blackhole("replies");
  const unanswered = client.send("SET", "a", 1);
  unanswered.catch(() => undefined);
  await waitUntil(() => proxy.counters.requests.chunks === 1, { what: "the request is stalled" });
  expect(await redis.ask("GET", "a")).toBeNull();
  proxy.unstall("both");
  await arrives("a");
  await proxy.heal();
  await expect(unanswered).rejects.toThrow("ECONNRESET");
});

it("resets in the middle of a reply", async () => {
  await using proxy = await proxied();
  await redis.ask("SET", "a", "0123456789");
  const socket = connect(proxy.port, "127.0.0.1");
  await once(socket, "connect");
  await waitUntil(() => proxy.links.size === 1, { what: "the link is open" });
  for (const link of proxy.links) link.replies.resetAfter(8);
  socket.write(encodeCommand(["GET", "a"]));
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk.toString();
  });
  // A client that reads the bytes and the reset together sees an end instead.
  socket.on("error", (error) => expect(error).toMatchObject({ code: "ECONNRESET" }));
  await new Promise((resolve) => socket.once("close", resolve));
  expect(received).toBe("$10\r\n012");
});

it("refuses connections while cut, and lets them wait while accept is paused", async () => {
  await using proxy = await proxied();
  await using client = await RespClient.connect(proxy.port);
  await client.send("PING");
  proxy.cut();
  await expect(client.send("PING")).rejects.toThrow(/ECONNRESET|closed/);
  await expect(RespClient.connect(proxy.port)).rejects.toThrow("ECONNREFUSED");
  await proxy.heal();

  proxy.pauseAccept();
  await using waiting = await RespClient.connect(proxy.port);
  const answer = waiting.send("PING");
  expect(proxy.counters.connections).toBe(1);
  await proxy.heal();
  expect(await answer).toBe("PONG");
});

it("calls its hooks in turn and takes the first verdict", async () => {
  await using proxy = await proxied("resp");
  await using client = await RespClient.connect(proxy.port);
  const seen: string[] = [];
  const remove = proxy.onRequest(({ command, args }) => {
    seen.push(`${command} ${args.join(" ")}`.trim());
    return undefined;
  });
  proxy.onRequest(({ command }) => (command === "INCR" ? { delayMs: 30 } : undefined));
  proxy.onReply(({ to }) => (to?.command === "PING" ? "reset" : "pass"));
  const startedMs = performance.now();
  expect(await client.send("INCR", "n")).toBe(1);
  expect(performance.now() - startedMs).toBeGreaterThan(28);
  remove();
  await expect(client.send("ping")).rejects.toThrow("ECONNRESET");
  expect(seen).toEqual(["INCR n"]);
});
