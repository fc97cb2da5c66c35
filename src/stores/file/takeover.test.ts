import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { apply } from "../../rules/ledger.js";
import type { Instant } from "../../rules/ledger-command.js";
import { inTransaction, openSqlite, type Sqlite } from "./client.js";
import { machineIdentity } from "./machine-runtime.js";
import { NameDocument } from "./name-document.js";
import { prepareSchema } from "./protocol.js";
import { detectRestart, Quarantine, takeOver } from "./takeover.js";

const TTL_US = 30_000_000;
/** The sum of so many tokens of today has more than 64 bits. */
const NAMESPACES = 6_000;
const INSERT = "INSERT INTO name VALUES (?, ?, ?)";
let folder: string;
let database: Sqlite;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-file-"));
  const path = join(folder, "locks.db");
  database = openSqlite(path);
  prepareSchema(database, path);
});

afterEach(() => {
  database.close();
  rmSync(folder, { recursive: true, force: true });
});

const TOKEN = 1_790_000_000_000_000;
const instant = (us: number): Instant => ({ us, wallUs: TOKEN + us });

/** Adds a name whose holder was granted at `atUs`, and renewed at once for each further ttl. */
function addHolder(atUs: number, [ttlUs = 0, ...renewalsUs]: readonly number[]): void {
  const at = instant(atUs);
  const document = new NameDocument("l:m", null, { last: TOKEN }, at);
  const sent = { key: "l:m", owner: "o", client: "c", notAfterUs: at.us, seenToken: 0 };
  const request = { mode: "exclusive", weight: 1, limit: 1, span: 1, meta: "{}" } as const;
  const patience = { enqueue: false, offerUs: 0, heartbeatUs: 0 };
  apply(document, { type: "acquire", ...sent, ...request, ...patience, ttlUs }, at, () => true);
  for (const renewedUs of renewalsUs) {
    const { key, owner, notAfterUs, seenToken } = sent;
    const renewal = { key, owner, notAfterUs, seenToken, ttlUs: renewedUs };
    apply(document, { type: "renew", ...renewal }, at, () => true);
  }
  database.run(INSERT, ["1", "l:m", document.toText()]);
}

/** What a command at this time meets; null if the file is ours. */
function look(us: number): unknown {
  try {
    takeOver(database, instant(us));
    return null;
  } catch (error) {
    return error;
  }
}

it("watches the leases of another boot, and sees every change, among very many namespaces", () => {
  addHolder(5 * TTL_US, [TTL_US]);
  inTransaction(database, () => {
    for (let id = 1; id <= NAMESPACES; id += 1) database.run(INSERT, [`${id}`, "", `${TOKEN}`]);
    database.run("UPDATE machine SET identity = 'another boot'", []);
  });
  expect(look(0)).toBeInstanceOf(Quarantine);
  const moved = [`${TOKEN + 1}`, `${NAMESPACES}`];
  database.run("UPDATE name SET body = ? WHERE namespace = ? AND key = ''", moved);
  expect(look(1)).toMatchObject({ isShared: true });
  expect(look(2 * TTL_US)).toBeNull();
});

it("watches a lease for its longest promise, which a shorter renewal leaves as it was", () => {
  addHolder(5 * TTL_US, [TTL_US, TTL_US / 30, TTL_US / 10]);
  database.run("UPDATE machine SET identity = 'another machine'", []);
  expect(look(0)).toMatchObject({ isShared: false });
  expect(look(TTL_US)).toBeInstanceOf(Quarantine);
  expect(look(1.1 * TTL_US)).toBeNull();
});

it("watches a lease for its last promise, which a longer renewal made", () => {
  addHolder(5 * TTL_US, [TTL_US / 30, TTL_US]);
  database.run("UPDATE machine SET identity = 'another machine'", []);
  look(0);
  expect(look(TTL_US)).toBeInstanceOf(Quarantine);
});

it("without a boot id, watches leases from before a restart, and keeps all others", () => {
  const atUs = 5 * TTL_US;
  addHolder(atUs, [TTL_US, TTL_US / 30]);
  const identity = () => database.get("SELECT identity FROM machine", [])?.[0];
  detectRestart(database, instant(atUs));
  expect(identity()).toBe(machineIdentity());
  const names = "SELECT count(*) FROM name WHERE key <> ''";
  detectRestart(database, instant(1));
  expect(identity()).toBe("");
  expect(look(1)).toBeInstanceOf(Quarantine);
  // Another process opens the file during the watch.
  detectRestart(database, instant(2));
  expect(look(TTL_US)).toBeInstanceOf(Quarantine);
  expect(database.get(names, [])).toEqual([1]);
  expect(look(1.1 * TTL_US)).toBeNull();
  expect(database.get(names, [])).toEqual([0]);
  expect(identity()).toBe(machineIdentity());
});

it("takes over a file without the row of its machine, and keeps foreign data in it", () => {
  database.exec("DELETE FROM machine");
  for (const [key, body] of [
    ["l:a", "garbage"],
    ["l:b", '{"holders":["x",3]}'],
    ["", "x"],
  ]) {
    database.run(INSERT, ["1", key ?? "", body ?? ""]);
  }
  inTransaction(database, () => takeOver(database, { us: 1, wallUs: 2 }));
  expect(database.all("SELECT identity, watch FROM machine", [])).toEqual([
    [machineIdentity(), null],
  ]);
  expect(database.all("SELECT body FROM name ORDER BY key", []).flat()).toEqual([
    "x",
    "garbage",
    '{"holders":["x",3]}',
  ]);
});
