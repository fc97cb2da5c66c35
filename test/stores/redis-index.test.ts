/** The index of names: it forgets what nobody released, and tells names by their bytes. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { Trial } from "./redis-trial.js";

let server: RedisServer;
let trial: Trial;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.close());
beforeEach(() => {
  trial = new Trial(server);
});
afterEach(() => trial.close());

test("names that nobody released leave it, also when commands come one by one", async () => {
  const locks = trial.ioredis(server.port);
  const index = `{hf:${trial.namespace}}`;
  const names = Array.from({ length: 100 }, (_, number) => `${index}:l:gone-${number}`);
  await server.ask("ZADD", index, ...names.flatMap((name) => [1, name]));
  const used = await locks.mutex("used").acquire();
  await server.ask("ZADD", index, 1, `${index}:l:used`);
  // One in some hundred looks, and it looks at 64 at a time.
  for (let turn = 0; turn < 5_000; turn += 1) {
    await (await locks.mutex(trial.name).acquire()).release();
    if (turn % 50 === 0 && (await server.ask("ZCARD", index)) === 2) break;
  }
  expect(await server.ask("ZRANGE", index, 0, -1)).toEqual(["", `${index}:l:used`]);
  await used.release();
  await trial.end(locks, 1_000);
});

test("names are listed in the order of their bytes", async () => {
  const locks = trial.ioredis(server.port);
  // The last two stand the other way round as UTF-16.
  const names = ["a", "b", "\u00e9", "\uff5e", "\u{1f512}"];
  const leases = await Promise.all(names.map((name) => locks.mutex(name).acquire()));
  const listed: string[] = [];
  for await (const { name } of locks.list()) listed.push(name);
  expect(listed).toEqual(names);
  await Promise.all(leases.map((lease) => lease.release()));
  await trial.end(locks, 1_000);
});
