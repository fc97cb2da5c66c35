import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { prepareSchema } from "./schema.js";
import { inTransaction, openSqlite, type Sqlite } from "./sqlite.js";
import { Quarantine, takeOver } from "./takeover.js";

const TTL_US = 30_000_000;
/** The sum of so many tokens of today has more than 64 bits. */
const NAMESPACES = 6_000;
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
  const holder = { expiryUs: 5 * TTL_US, ttlUs: TTL_US };
  inTransaction(database, () => {
    for (let id = 1; id <= NAMESPACES; id += 1) {
      const values = [id, `${id}`, 1_790_000_000_000_000];
      database.run("INSERT INTO space VALUES (?, ?, ?)", values);
    }
    const body = JSON.stringify({ holders: [holder] });
    database.run("INSERT INTO name VALUES (1, 'l:m', ?)", [body]);
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
  database.run("UPDATE space SET token = token + 1 WHERE id = ?", [NAMESPACES]);
  expect(look(1)).toMatchObject({ refusal: { code: "HF_STORE" } });
  expect(look(2 * TTL_US)).toBeNull();
});
