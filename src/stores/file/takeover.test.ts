import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { LedgerDocument } from "../../families/ledger/ledger-document.js";
import { machineIdentity } from "./machine-identity.js";
import { prepareSchema } from "./schema.js";
import { inTransaction, openSqlite, type Sqlite } from "./sqlite.js";
import { Quarantine, takeOver } from "./takeover.js";

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

it("watches the leases of another boot, and sees every change, among very many namespaces", () => {
  const token = { last: 1_790_000_000_000_000 };
  const at = { us: 5 * TTL_US, wallUs: token.last };
  const document = new LedgerDocument("l:m", null, token, at);
  const request = { mode: "exclusive", weight: 1, limit: 1, span: 1, meta: "{}" } as const;
  const times = { ttlUs: TTL_US, grantedUs: at.us, expiryUs: at.us + TTL_US };
  const grant = { owner: "o", client: "c", token: token.last, confirmed: true };
  document.putHolder({ ...request, ...times, ...grant });
  inTransaction(database, () => {
    for (let id = 1; id <= NAMESPACES; id += 1) {
      database.run(INSERT, [`${id}`, "", `${token.last}`]);
    }
    database.run(INSERT, ["1", "l:m", document.toText()]);
    database.run("UPDATE machine SET identity = 'another boot'", []);
  });
  const look = (us: number): unknown => {
    try {
      takeOver(database, { us, wallUs: 1_790_000_000_000_000 });
      return null;
    } catch (error) {
      return error;
    }
  };
  expect(look(0)).toBeInstanceOf(Quarantine);
  const moved = [`${token.last + 1}`, `${NAMESPACES}`];
  database.run("UPDATE name SET body = ? WHERE namespace = ? AND key = ''", moved);
  expect(look(1)).toMatchObject({ refusal: { code: "HF_STORE" } });
  expect(look(2 * TTL_US)).toBeNull();
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
