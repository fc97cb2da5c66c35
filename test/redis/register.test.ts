/** The register of names: it drops unreleased names, and orders names by their bytes. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { startProxy } from "../faults/proxy.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { Trial } from "./trial.js";

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

test("unreleased names are dropped, also when commands come one by one", async () => {
  const locks = trial.ioredis(server.port);
  const register = `{hf:${trial.namespace}}`;
  // Half of the names have an expired holder, half had a hash that expired.
  const over = `H${"1".padStart(16, "0").repeat(4)}0001${"0".repeat(32)}xowner client {}`;
  const fields = Array.from({ length: 1_000 }, (_, number) => [
    `l:gone-${number}`,
    number % 2 === 0 ? over : "F",
  ]);
  await server.ask("HSET", register, ...fields.flat());
  const used = await locks.mutex("used").acquire();
  const contended = await locks.mutex("contended").acquire();
  const waiting = trial.ioredis(server.port).mutex("contended").acquire();
  await expect.poll(async () => (await locks.inspect("contended")).waiters).toHaveLength(1);
  let turns = 0;
  while (turns < 3_000 && (await server.ask("HLEN", register)) !== 3) {
    for (let turn = 0; turn < 50; turn += 1) {
      await (await locks.mutex(trial.name).acquire()).release();
    }
    turns += 50;
  }
  const left = (await server.ask("HKEYS", register)) as string[];
  expect(left.sort()).toEqual(["", "l:contended", "l:used"]);
  await contended.release();
  await (await waiting).release();
  await used.release();
  expect(await server.ask("HKEYS", register)).toEqual([""]);
  await trial.end(locks, 1_000);
});

test("commands that are made together say their terms once", async () => {
  await using proxy = await startProxy({ targetPort: server.port, framing: "resp" });
  const locks = trial.ioredis(proxy.port);
  const mutexes = Array.from({ length: 100 }, (_, number) => locks.mutex(`together-${number}`));
  await (await locks.mutex("first").acquire()).release();
  const letters: string[] = [];
  proxy.onRequest(({ command, args: [, , , ...rest] }) => {
    if (command !== "EVALSHA") return undefined;
    letters.push(...rest.slice(rest.length / 2).map((text) => text.charAt(0)));
    return undefined;
  });
  const leases = await Promise.all(mutexes.map((mutex) => mutex.acquire()));
  // A grant whose reply was slow is confirmed.
  const acquires = letters.filter((letter) => letter !== "0");
  expect(acquires[0]).toBe("X");
  // Not all of them: each millisecond has terms of its own.
  expect(acquires).toContain('"');
  const tokens = leases.map(({ token }) => token);
  expect(tokens).toEqual([...new Set(tokens)].sort());
  await Promise.all(leases.map((lease) => lease.release()));
  await trial.end(locks, 1_000);
});

test("names are listed in the order of their bytes", async () => {
  const locks = trial.ioredis(server.port);
  // UTF-16 would order the last two the other way round.
  const names = ["a", "b", "\u00e9", "\uff5e", "\u{1f512}"];
  const leases = await Promise.all(names.map((name) => locks.mutex(name).acquire()));
  const listed: string[] = [];
  for await (const { name } of locks.list()) listed.push(name);
  expect(listed).toEqual(names);
  await Promise.all(leases.map((lease) => lease.release()));
  await trial.end(locks, 1_000);
});
