import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { startEtcd } from "../servers/etcd.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { RespClient } from "../servers/resp.js";
import { loseReply, loseRequest } from "./message-loss.js";
import { type FaultProxy, startProxy } from "./proxy.js";

let redis: RedisServer;
let proxy: FaultProxy;

beforeAll(async () => {
  redis = await startRedis();
  proxy = await startProxy({ targetPort: redis.port, framing: "resp" });
});

beforeEach(async () => {
  await redis.ask("FLUSHALL");
});

afterAll(async () => {
  await proxy.close();
  await redis.close();
});

it("loses the second reply to a command in the middle of a pipeline", async () => {
  await using client = await RespClient.connect(proxy.port);
  const loss = loseReply(proxy, { match: "incr", nth: 2 });
  const commands = ["INCR", "GET", "INCR", "GET"].map((command) => client.send(command, "n"));
  const results = await Promise.allSettled(commands);
  expect(results.map(({ status }) => status)).toEqual([
    "fulfilled",
    "fulfilled",
    "rejected",
    "rejected",
  ]);
  expect((await loss.struck).args).toEqual(["n"]);
  expect(await redis.ask("GET", "n")).toBe("2");
});

it("does not count pushes as replies", async () => {
  await using client = await RespClient.connect(proxy.port);
  expect(await client.send("SUBSCRIBE", "news")).toEqual(["subscribe", "news", 1]);
  const loss = loseReply(proxy, { match: ({ args }) => args[0] === "mine" });
  expect(await redis.ask("PUBLISH", "news", "mine")).toBe(1);
  await expect(client.send("PING", "mine")).resolves.toEqual(["message", "news", "mine"]);
  await loss.struck;
});

it("loses a request without a reset", async () => {
  await using client = await RespClient.connect(proxy.port);
  const loss = loseRequest(proxy, { match: "INCR", how: "drop" });
  const lost = client.send("INCR", "n");
  lost.catch(() => undefined);
  await loss.struck;
  expect(await redis.ask("GET", "n")).toBeNull();
  await proxy.heal();
  await expect(lost).rejects.toThrow("ECONNRESET");
});

it("does nothing after cancel", async () => {
  await using client = await RespClient.connect(proxy.port);
  loseReply(proxy).cancel();
  expect(await client.send("PING")).toBe("PONG");
});

it("loses the reply of an etcd server, without framing", async () => {
  await using etcd = await startEtcd();
  await using toEtcd = await startProxy({ targetPort: etcd.port });
  const loss = loseReply(toEtcd);
  const body = JSON.stringify({ key: "YQ==", value: "MQ==" });
  const url = `http://127.0.0.1:${toEtcd.port}/v3/kv/put`;
  await expect(fetch(url, { method: "POST", body })).rejects.toThrow("fetch failed");
  await loss.struck;
  expect(await etcd.post("/v3/kv/range", { key: "YQ==" })).toMatchObject({ count: "1" });
});
