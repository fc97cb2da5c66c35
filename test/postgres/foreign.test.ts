/**
 * Rows that no client wrote give nobody the name, and fail commands on their own name only: the
 * other names of the same batch go on.
 */
import type { Client } from "pg";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { Command } from "../../src/rules/ledger-command.js";
import { decodePage } from "../../src/stores/postgres/codec.js";
import { SCHEMA } from "../../src/stores/postgres/schema.generated.js";
import { LedgerFunctions } from "../fixtures/ledger-functions.js";
import { requestOf } from "../fixtures/ledger-script.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";

let server: PostgresServer;
let client: Client;
let ledger: LedgerFunctions;

beforeAll(async () => {
  server = await startPostgres();
  client = await server.client();
  ledger = new LedgerFunctions(client, "s");
  await client.query(SCHEMA);
});

beforeEach(async () => {
  await client.query(`truncate ${TABLES.map((table) => `holdfast.${table}`).join()}`);
});

afterAll(async () => {
  await client?.end();
  await server?.close();
});

const BAD = "l:bad";
const TABLES = ["name", "holder", "waiter", "client", "tombstone"];

function shared(key: string, owner: string) {
  return requestOf(key, owner, { limit: 3 });
}

function mutex(key: string, owner: string) {
  return requestOf(key, owner, { mode: "exclusive" });
}

/** A name with an exclusive or with shared holders, a waiter and a tombstone. */
async function fill(isShared: boolean): Promise<void> {
  const first = isShared ? shared(BAD, "o1") : mutex(BAD, "o1");
  expect(await ledger.do(first)).toMatchObject({ type: "granted" });
  if (isShared) await ledger.do(shared(BAD, "o2"));
  await ledger.do(mutex(BAD, "waiter"));
  await ledger.do({ type: "release", key: BAD, owner: "gone", tombstoneUs: 8e15, keep: null });
}

/** The answers to all commands: an error, or the type of the reply. */
async function ask(): Promise<Record<string, string>> {
  const renewal = { ttlUs: 1e6, notAfterUs: 9e15, seenToken: 0 };
  const commands: Command[] = [
    mutex("l:before", "b"),
    mutex(BAD, "new"),
    { type: "inspect", key: BAD },
    { type: "renew", key: BAD, owner: "o1", ...renewal },
    { type: "heartbeat", key: BAD, client: "waiter" },
    { type: "release", key: BAD, owner: "stranger", tombstoneUs: 0, keep: null },
    mutex("l:after", "a"),
  ];
  const { replies } = await ledger.execute(commands);
  await ledger.execute(
    ["b", "a"].map((owner, at) => {
      const key = at === 0 ? "l:before" : "l:after";
      return { type: "release", key, owner, tombstoneUs: 0, keep: null };
    }),
  );
  return Object.fromEntries(
    commands.map(({ key, type }, at) => {
      const reply = replies[at];
      return [`${key} ${type}`, reply instanceof Error ? "error" : `${reply?.type}`];
    }),
  );
}

const DAMAGE = [
  ["name", "last = 9223372036854775807"],
  ["name", "last = -1"],
  ["name", "last = 1"],
  ["name", "lease.granted = -9223372036854775807"],
  ["name", "lease.expiry = 9223372036854775807"],
  ["name", "lease.expiry = -9223372036854775807"],
  ["name", "lease.expiry = null"],
  ["name", "lease.owner = null"],
  ["name", "lease.owner = null, lease.expiry = 0"],
  ["name", "lease.token = null"],
  ["name", "lease.token = 9223372036854775807"],
  ["name", "lease.span = 2147483647"],
  ["name", "place = 9223372036854775807"],
  ["name", "shared = 2147483647, shared_weight = 9223372036854775807"],
  ["name", "shared = -1"],
  ["name", "shared = shared + 1"],
  ["name", "shared_weight = -9223372036854775807"],
  ["name", "waiting = 2147483647"],
  ["name", "waiting = -1"],
  ["name", "last_tombstone = 9223372036854775807, silent = -9223372036854775808"],
  ["name", "mark_until = 9223372036854775807"],
  ["name", "mark_until = 8e15"],
  ["name", "lease.client = null, lease.meta = null"],
  ["holder", "expiry = 9223372036854775807, granted = -9223372036854775807"],
  ["holder", "expiry = -9223372036854775807"],
  ["holder", "span = 2147483647"],
  ["holder", "weight_limit = -1, weight = 9223372036854775807"],
  ["waiter", "span = -5, offer = 9223372036854775807"],
  ["waiter", "since = -9223372036854775807"],
  ["client", "heartbeat = 9223372036854775807, gone = -9223372036854775807"],
  ["client", "place = 77"],
  ["tombstone", "until = 9223372036854775807"],
] as const;

it.each(DAMAGE.flatMap((damage) => [[...damage, false] as const, [...damage, true] as const]))(
  "%s: %s (shared: %s) harms its own name only",
  async (table, change, isShared) => {
    await fill(isShared);
    await client.query(`update holdfast.${table} set ${change} where key = '${BAD}'`);
    for (let round = 0; round < 2; round += 1) {
      const said = await ask();
      expect(said).toMatchObject({ "l:before acquire": "granted", "l:after acquire": "granted" });
      expect(said).not.toMatchObject({ [`${BAD} acquire`]: "granted" });
      expect([said, said[`${BAD} renew`]]).not.toEqual([said, "gone"]);
    }
  },
);

it("is left out of a list, which has all other names", async () => {
  await fill(true);
  for (const key of ["l:a", "l:z"]) await ledger.do(mutex(key, "o"));
  await client.query("update holdfast.holder set granted = -9223372036854775807");
  const { rows } = await client.query("select holdfast.list_3('s', '', '', 10) as page");
  const unreadable: string[] = [];
  const { names } = decodePage(rows[0].page, (key) => unreadable.push(key));
  expect(names.map(({ key }) => key)).toEqual(["l:a", "l:z"]);
  expect(unreadable).toEqual([BAD]);
});

it("works again when the damaged rows are removed", async () => {
  await fill(true);
  await client.query("update holdfast.name set last = 9223372036854775807");
  expect(await ask()).toMatchObject({ [`${BAD} acquire`]: "error" });
  for (const table of TABLES) {
    await client.query(`delete from holdfast.${table} where key = '${BAD}'`);
  }
  expect(await ledger.do(mutex(BAD, "new"))).toMatchObject({ type: "granted" });
});
