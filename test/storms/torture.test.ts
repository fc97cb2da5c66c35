/** How often a lock is granted while its waiters and its holders are killed and stopped. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { torture } from "./torture.js";

const OPTIONS = { ttlMs: 1_500, lastsMs: isFull ? 60_000 : 13_000 };
/**
 * A holder that is killed costs a whole ttl on every store. Chance decides how often a fault hits
 * the holder, and that differs by a factor of two between short runs.
 */
const MIN_SHARE = isFull ? 1 / 2 : 1 / 4;

let redis: RedisServer;
let postgres: PostgresServer;
beforeAll(async () => {
  redis = await startRedis();
  postgres = await startPostgres();
});
afterAll(async () => {
  await redis?.close();
  await postgres?.close();
});

// Redis knows by PUBLISH that a waiter is dead.
test("postgres is not held up by dead waiters, compared with redis", async () => {
  const onRedis = await torture(redis.url, OPTIONS);
  const onPostgres = await torture(postgres.url, OPTIONS);
  console.info({ onRedis, onPostgres });
  expect(onPostgres.grants).toBeGreaterThan(MIN_SHARE * onRedis.grants);
});
