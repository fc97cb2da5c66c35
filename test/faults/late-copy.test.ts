import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { RespClient, RespError } from "../servers/resp.js";
import { holdRequest, recordRequest } from "./late-copy.js";
import { type FaultProxy, startProxy } from "./proxy.js";

let redis: RedisServer;
let proxy: FaultProxy;

beforeAll(async () => {
  redis = await startRedis();
});

beforeEach(async () => {
  await redis.ask("FLUSHALL");
  proxy = await startProxy({ targetPort: redis.port, framing: "resp" });
});

afterEach(() => proxy.close());

afterAll(() => redis.close());

const acquire = ["SET", "lock", "me", "NX", "PX", 60_000] as const;

it("delivers an acquire after the client has given up, retried and released", async () => {
  const first = await RespClient.connect(proxy.port);
  const held = holdRequest(proxy, { match: "SET" });
  first.send(...acquire).catch(() => undefined);
  expect((await held.caught).args[0]).toBe("lock");
  await first.close();

  await using second = await RespClient.connect(proxy.port);
  expect(await second.send(...acquire)).toBe("OK");
  expect(await second.send("DEL", "lock")).toBe(1);

  expect(await held.deliver()).toBe("OK");
  expect(await redis.ask("GET", "lock")).toBe("me");
});

it("delivers after the network was cut and healed", async () => {
  await using client = await RespClient.connect(proxy.port);
  const held = holdRequest(proxy, { match: "SET" });
  const lost = client.send(...acquire);
  lost.catch(() => undefined);
  await held.caught;
  proxy.cut();
  await expect(lost).rejects.toThrow("ECONNRESET");
  await proxy.heal();
  expect(await redis.ask("GET", "lock")).toBeNull();
  expect(await held.deliver()).toBe("OK");
});

it("breaks the connection of the request and of no other", async () => {
  await using client = await RespClient.connect(proxy.port);
  await using other = await RespClient.connect(proxy.port);
  expect(await other.send("PING")).toBe("PONG");
  const held = holdRequest(proxy, { match: "SET", resets: true });
  await expect(client.send(...acquire)).rejects.toThrow("ECONNRESET");
  expect(await redis.ask("GET", "lock")).toBeNull();
  expect(await held.deliver()).toBe("OK");
  expect(await other.send("GET", "lock")).toBe("me");
});

it("delivers to a client that still waits", async () => {
  await using client = await RespClient.connect(proxy.port);
  const held = holdRequest(proxy, { nth: 2 });
  const replies = [1, 2, 3].map(() => client.send("INCR", "n"));
  await held.caught;
  expect(await redis.ask("GET", "n")).toBe("1");
  expect(await held.deliver()).toBe(2);
  expect(await Promise.all(replies)).toEqual([1, 2, 3]);
});

it("repeats a request on a new connection and on the old one", async () => {
  const client = await RespClient.connect(proxy.port);
  const copy = recordRequest(proxy, { match: "SET" });
  expect(await client.send(...acquire)).toBe("OK");
  await redis.ask("DEL", "lock");

  expect(await copy.replay("new")).toBe("OK");
  expect(await copy.replay("new")).toBeNull();
  expect(await copy.replay("new", [["SELECT", "5"]])).toBe("OK");

  await client.send("SELECT", 7);
  const late = copy.replay("old");
  await client.close();
  expect(await late).toBe("OK");
  expect(await redis.ask("INFO", "keyspace")).toContain("db7:keys=1");

  await redis.ask("CONFIG", "SET", "maxmemory", 1);
  expect(await copy.replay("new", [["SELECT", "9"]])).toBeInstanceOf(RespError);
  await redis.ask("CONFIG", "SET", "maxmemory", 0);
});
