/**
 * Batches of many names run at once on many connections, and none of them fails. Rows are made,
 * locked and removed by all of them: an order that differs between two batches would deadlock.
 */

import type { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { NO_LIMIT } from "../../src/rules/fits.js";
import type { Command } from "../../src/rules/ledger-command.js";
import { SCHEMA } from "../../src/stores/postgres/schema.generated.js";
import { isFull } from "../fixtures/depth.js";
import { LedgerFunctions } from "../fixtures/ledger-functions.js";
import { randomOf } from "../fixtures/seed.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";

const random = randomOf("deadlocks");
const BATCHES = isFull ? 10_000 : 400;
const CONNECTIONS = 8;
const NAMES = 250;
const SIZE = 100;
const SPACE = "deadlocks";

let server: PostgresServer;
const clients: Client[] = [];

beforeAll(async () => {
  server = await startPostgres();
  await server.ask(SCHEMA);
  for (let at = 0; at < CONNECTIONS; at += 1) clients.push(await server.client());
});

afterAll(async () => {
  await Promise.all(clients.map((client) => client.end()));
  await server?.close();
});

function below(limit: number): number {
  return Math.floor(random() * limit);
}

function commandOf(key: string, owner: string, kind: number): Command {
  if (kind === 0) return { type: "release", key, owner, tombstoneUs: 0, keep: null };
  if (kind === 1) {
    return { type: "renew", key, owner, ttlUs: 50_000, notAfterUs: 9e15, seenToken: 0 };
  }
  if (kind === 2) return { type: "inspect", key };
  return {
    type: "acquire",
    key,
    owner,
    client: "someone",
    mode: kind === 3 ? "shared" : "exclusive",
    weight: 1,
    limit: NO_LIMIT,
    ttlUs: 50_000,
    offerUs: 10_000,
    heartbeatUs: 10_000,
    span: 1,
    meta: "{}",
    enqueue: below(20) === 0,
    notAfterUs: 9e15,
    seenToken: 0,
  };
}

/** Names in random order. Half of the batches are of one kind: those take the short paths. */
function batchOf(owner: string): Command[] {
  const kinds = below(2) === 0 ? [below(5)] : [0, 1, 2, 3, 4, 4, 4];
  return Array.from({ length: SIZE }, () => {
    const kind = kinds[below(kinds.length)] ?? 4;
    return commandOf(`l:${below(NAMES)}`, owner, kind);
  });
}

it(`runs ${BATCHES} batches at once without a deadlock`, { timeout: 60 * BATCHES }, async () => {
  let sent = 0;
  let removed = 0;
  const work = async (client: Client, at: number): Promise<void> => {
    while (sent < BATCHES) {
      sent += 1;
      const commands = batchOf(`owner-${at}-${below(3)}`);
      const { replies } = await new LedgerFunctions(client, SPACE).execute(commands);
      expect(replies.filter((reply) => reply instanceof Error)).toEqual([]);
      if (at > 0) continue;
      // Rows must be missing again and again: names at rest are removed.
      const swept = await client.query(
        `delete from holdfast.name where (namespace, key) in (
           select namespace, key from holdfast.name
           where (lease).owner is null and shared = 0 and waiting = 0 and last_tombstone = 0
             and mark_until is null
           order by key limit 20 for update skip locked)`,
      );
      removed += swept.rowCount ?? 0;
    }
  };
  const isRetried = (error: { code?: string }): boolean => error.code === "40001";
  const untilDone = async (client: Client, at: number): Promise<void> => {
    // A name that was removed meanwhile fails the batch: the client sends it again.
    while (sent < BATCHES) {
      await work(client, at).catch((error) => {
        if (!isRetried(error)) throw error;
      });
    }
  };
  await Promise.all(clients.map(untilDone));
  expect(removed).toBeGreaterThan(0);
  const [stats] = await server.ask(
    "select deadlocks::int from pg_stat_database where datname = 'postgres'",
  );
  expect(stats).toEqual({ deadlocks: 0 });
});
