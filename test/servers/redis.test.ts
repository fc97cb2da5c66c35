import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { isAlive, isStopped } from "./process-state.js";
import { startRedis, startReplication } from "./redis.js";
import { RespError } from "./resp.js";

it("starts, serves, and leaves nothing behind", async () => {
  const redis = await startRedis();
  const { pid, reaperPid, dir } = redis;
  expect(await redis.ask("SET", "a", 1)).toBe("OK");
  await expect(redis.ask("INCR")).rejects.toBeInstanceOf(RespError);
  expect(await redis.ask("DEBUG", "SLEEP", 0)).toBe("OK");
  await redis.close();
  expect([pid, reaperPid].filter(isAlive)).toEqual([]);
  expect(existsSync(dir)).toBe(false);
});

// Without HOLDFAST_SERVERS the PATH decides, and any version is fine.
const [, kind, version] =
  /\b(redis|valkey)-([\d.]+)/.exec(process.env.HOLDFAST_SERVERS ?? "") ?? [];
it.runIf(kind)("is the server that HOLDFAST_SERVERS names", async () => {
  await using redis = await startRedis();
  const info = await redis.info("server");
  expect(`${info[`${kind}_version`]}.`).toMatch(new RegExp(`^${version}\\.`));
});

it("answers requests from a pause when it is resumed", async () => {
  await using redis = await startRedis();
  await using client = await redis.client();
  await redis.pause();
  expect(isStopped(redis.pid)).toBe(true);
  const reply = client.send("INCR", "n");
  redis.resume();
  expect(await reply).toBe(1);
  await redis.pause();
  await redis.stop();
  expect(redis.running).toBe(false);
});

it("restarts on its port with and without its data", async () => {
  await using redis = await startRedis();
  const before = redis.pid;
  await redis.ask("SET", "a", 1);
  await redis.restart({ keepData: true });
  expect(redis.pid).not.toBe(before);
  expect(await redis.ask("GET", "a")).toBe("1");
  await redis.kill();
  await expect(redis.ask("PING")).rejects.toThrow("ECONNREFUSED");
  await redis.restart({ keepData: false });
  expect(await redis.ask("GET", "a")).toBeNull();
});

it("reports the message of a server that does not start", async () => {
  await expect(startRedis({ args: ["--no-such-option", "1"] })).rejects.toThrow(/no-such-option/);
});

it("replicates", async () => {
  await using group = await startReplication({ replicas: 2 });
  await using client = await group.master.client();
  await client.send("SET", "a", 1);
  expect(await client.send("WAIT", 2, 5000)).toBe(2);
  const copies = await Promise.all(group.replicas.map((replica) => replica.ask("GET", "a")));
  expect(copies).toEqual(["1", "1"]);
});
