/** Plain keys shared with redis-py and redsync. Needs Python and Go, and runs on demand. */

import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { redlockStore } from "../../src/stores/redlock/index.js";
import { isFull } from "../fixtures/depth.js";
import { Contender, commandOf } from "../interop/contender.js";
import { type RedisServer, startRedis } from "../servers/redis.js";

const LIBRARIES = ["redis-py", "redsync"] as const;
const WAIT_MS = 30_000;
const BUILD_MS = 600_000;

describe.skipIf(!isFull)("other libraries", { timeout: 120_000 }, () => {
  let server: RedisServer;
  let client: Redis;
  let locks: Holdfast;
  const commands = new Map<string, readonly string[]>();
  // The first time, packages are fetched and a program is built.
  beforeAll(async () => {
    for (const library of LIBRARIES) commands.set(library, await commandOf(library));
  }, BUILD_MS);
  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.port);
    locks = new Holdfast(redlockStore({ client, pollMs: 50 }));
  });
  afterAll(async () => {
    await locks?.close();
    client?.disconnect();
    await server?.close();
  });

  for (const library of LIBRARIES) {
    test(`${library} and the store exclude each other`, async () => {
      const command = commands.get(library) ?? [];
      await using theirs = await Contender.start(command, `127.0.0.1:${server.port}`);
      const lock = locks.mutex(library);
      expect(await theirs.ask(`acquire ${library}`)).toBe("granted");
      expect(await lock.tryAcquire()).toBe(null);
      const waiting = lock.acquire({ waitMs: WAIT_MS });
      expect(await theirs.ask("release")).toBe("released");
      const lease = await waiting;
      expect(await theirs.ask(`try ${library}`)).toBe("busy");
      const granted = theirs.ask(`acquire ${library}`);
      expect(await lease.release()).toBe(true);
      expect(await granted).toBe("granted");
      expect(await lock.tryAcquire()).toBe(null);
      // A key that expired and was taken by the store is not theirs any more.
      await server.ask("DEL", library);
      const taken = await lock.acquire({ waitMs: WAIT_MS });
      expect(await theirs.ask("release")).toBe("lost");
      taken.assertHeld();
      expect(await taken.release()).toBe(true);
    });
  }
});
