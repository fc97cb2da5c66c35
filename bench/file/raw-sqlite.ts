import { commit, openSqlite } from "../../src/stores/file/client.js";
import type { Locker } from "../turns.js";

const READ = "SELECT body FROM name WHERE key = ?";
const WRITE = "INSERT OR REPLACE INTO name VALUES (?, ?)";
const DELETE = "DELETE FROM name WHERE key = ?";

/** The least that a lock in SQLite needs: to read and to write in one transaction. */
export function openRawSqlite(path: string): Locker {
  const database = openSqlite(path);
  database.exec("PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
  database.exec("CREATE TABLE IF NOT EXISTS name (key TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID");
  const step = (name: string, isTaken: boolean, sql: string, values: string[]): void => {
    database.begin();
    const row = database.get(READ, [name]);
    if ((row !== undefined) !== isTaken) throw new Error("the raw pair met contention");
    database.run(sql, values);
    commit(database);
  };
  return {
    acquire: async (name) => {
      step(name, false, WRITE, [name, JSON.stringify({ owner: process.pid, atMs: Date.now() })]);
      return async () => step(name, true, DELETE, [name]);
    },
    close: async () => database.close(),
  };
}
