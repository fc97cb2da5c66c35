/**
 * Commands that change their rows without locking them first, behind a transaction that has the row
 * locked. It changes the row or not: only a changed row is judged again by the same statement.
 */
import type { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Command } from "../../src/rules/ledger-command.js";
import { SCHEMA } from "../../src/stores/postgres/schema.generated.js";
import { LedgerFunctions } from "../fixtures/ledger-functions.js";
import { requestOf } from "../fixtures/ledger-script.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";

const KEYS = ["l:a", "l:b"];
/** How long a request may be under way. */
const LIMIT_US = 300_000;

let server: PostgresServer;
let client: Client & { processID?: number };
let blocker: Client;
let ledger: LedgerFunctions;

beforeAll(async () => {
  server = await startPostgres();
  await server.ask(SCHEMA);
  client = await server.client();
  blocker = await server.client();
  ledger = new LedgerFunctions(client, "s");
});

afterAll(async () => {
  await Promise.all([client?.end(), blocker?.end()]);
  await server?.close();
});

beforeEach(async () => {
  await client.query("truncate holdfast.name");
  // The rows are there, and the session knows that names are granted.
  await ledger.execute(KEYS.map((key) => mutex(key, "first")));
});

function mutex(key: string, owner: string, notAfterUs = 9e15) {
  return requestOf(key, owner, { mode: "exclusive", notAfterUs });
}

async function release(): Promise<void> {
  await ledger.execute(
    KEYS.map((key) => ({ type: "release", key, owner: "first", tombstoneUs: 0, keep: null })),
  );
}

async function serverUs(): Promise<number> {
  const text = "select extract(epoch from clock_timestamp()) * 1000000 as us";
  return Math.floor(Number((await server.ask(text))[0]?.us));
}

/** The types of the replies to commands that waited until the server's time was `untilUs`. */
async function behindLock(change: string, untilUs: number, commands: Command[]) {
  await blocker.query("begin");
  // The other rows of a batch are judged before the wait.
  await blocker.query(change.replace("KEY", commands.at(-1)?.key ?? ""));
  const execution = ledger.execute(commands).catch((error: { code: string }) => error.code);
  const text = "select wait_event_type as type from pg_stat_activity where pid = $1";
  await waitUntil(async () => (await server.ask(text, [client.processID]))[0]?.type === "Lock", {
    what: "the statement waits for a lock",
  });
  await waitUntil(async () => (await serverUs()) > untilUs, { what: "the time is over" });
  await blocker.query("commit");
  const answer = await execution;
  if (typeof answer === "string") return answer;
  return answer.replies.map((reply) => (reply instanceof Error ? "error" : reply.type));
}

describe.each([
  ["locked", "select from holdfast.name where key = 'KEY' for update"],
  ["changed", "update holdfast.name set last = last + 1 where key = 'KEY'"],
])("a row that another transaction %s", (_, change) => {
  it("is not granted after the time of a request", async () => {
    await release();
    const untilUs = (await serverUs()) + LIMIT_US;
    const said = await behindLock(change, untilUs, [mutex("l:a", "o", untilUs)]);
    // Either the request is refused, or nothing of it was applied, and it is sent again.
    expect([["stale"], "40001"]).toContainEqual(said);
    expect(await ledger.do({ type: "inspect", key: "l:a" })).toMatchObject({ holders: [] });
    expect(await ledger.do(mutex("l:a", "o", untilUs))).toMatchObject({ reason: "late" });
  });

  it("is not granted after the time of a batch", async () => {
    await release();
    const untilUs = (await serverUs()) + LIMIT_US;
    const batch = KEYS.map((key) => mutex(key, "o", untilUs));
    expect(await behindLock(change, untilUs, batch)).toEqual(["stale", "stale"]);
  });

  it.each([1, 2])("is not renewed after the time of a request, in a batch of %i", async (size) => {
    const untilUs = (await serverUs()) + LIMIT_US;
    const times = { ttlUs: 500_000_000, notAfterUs: untilUs, seenToken: 0 };
    const batch = KEYS.slice(0, size).map(
      (key) => ({ type: "renew", key, owner: "first", ...times }) as const,
    );
    const said = await behindLock(change, untilUs, batch);
    expect([batch.map(() => "stale"), "40001"]).toContainEqual(said);
    const rows = await server.ask("select from holdfast.name where (lease).ttl = 500000000");
    expect(rows).toEqual([]);
  });

  it.each([1, 2])("is granted in time, in a batch of %i", async (size) => {
    await release();
    const batch = KEYS.slice(0, size).map((key) => mutex(key, "o"));
    const said = await behindLock(change, await serverUs(), batch);
    expect(said).toEqual(batch.map(() => "granted"));
  });
});
