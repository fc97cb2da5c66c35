/**
 * The little of SQLite that the store needs, over the two libraries it may come from: the one built
 * into Node (22.13 and later), or `libsql`. Both read and write the same files, also at the same
 * time.
 */
import { readFileSync } from "node:fs";
import { StoreError } from "../../errors.js";
import { requireNative } from "../peers.js";

export type Value = string | number | null;
export type Row = readonly Value[];

/** One connection. Statements are prepared once and kept by their text. */
export interface Sqlite {
  /**
   * Begins a transaction in which no other connection writes; fails while another one is in such a
   * transaction.
   */
  begin(): void;
  exec(sql: string): void;
  get(sql: string, values: Value[]): Row | undefined;
  all(sql: string, values: Value[]): Row[];
  run(sql: string, values: Value[]): void;
  /** How many rows that changed. */
  change(sql: string, values: Value[]): number;
  /**
   * The same outside of a transaction, as a transaction of its own; undefined when it failed, and
   * nothing was done. The statement must change nothing where all values are null.
   */
  changeAlone(sql: string, values: Value[]): number | undefined;
  close(): void;
}

interface BuiltInStatement {
  get(...values: Value[]): Record<string, Value> | undefined;
  all(...values: Value[]): Record<string, Value>[];
  run(...values: Value[]): { changes: number | bigint };
}

interface BuiltInModule {
  DatabaseSync: new (
    path: string,
  ) => { exec(sql: string): void; prepare(sql: string): BuiltInStatement; close(): void };
}

interface LibsqlStatement {
  raw(isRaw: boolean): LibsqlStatement;
  get(values: Value[]): Row | undefined;
  all(values: Value[]): Row[];
  run(values: Value[]): { changes: number };
}

type LibsqlModule = new (
  path: string,
) => { exec(sql: string): void; prepare(sql: string): LibsqlStatement; close(): void };

type Open = (path: string) => Sqlite;

/**
 * Two copies of a SQLite library in one process would break each other's file locks (closing a file
 * drops all locks of the process), so all copies of this package in a process share the one loaded.
 */
const SHARED = Symbol.for("holdfast.sqlite");

export function openSqlite(path: string): Sqlite {
  const shared = globalThis as { [SHARED]?: Open };
  shared[SHARED] ??= builtIn() ?? libsql();
  return shared[SHARED](path);
}

const BEGIN = "BEGIN IMMEDIATE";

export function commit(database: Sqlite): void {
  database.exec("COMMIT");
}

/** Runs `work` in a transaction of its own. */
export function inTransaction(database: Sqlite, work: () => void): void {
  database.begin();
  try {
    work();
    commit(database);
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

export function rollBack(database: Sqlite): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // SQLite did it already, as it does when the disk is full.
  }
}

/**
 * The result code of a failed call, without its extension; undefined when SQLite did not say it.
 */
export function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, rawCode } = error as { errcode?: unknown; rawCode?: unknown };
  const code = errcode ?? rawCode;
  return typeof code === "number" ? code & 0xff : undefined;
}

function builtIn(): Open | undefined {
  const module = withoutWarning(
    () => process.getBuiltinModule("node:sqlite") as unknown as BuiltInModule | undefined,
  );
  if (!module) return undefined;
  return (path) => {
    const database = new module.DatabaseSync(path);
    const statement = cached((sql) => database.prepare(sql));
    const change = (sql: string, values: Value[]): number =>
      Number(statement(sql).run(...values).changes);
    return {
      begin: () => database.exec(BEGIN),
      exec: (sql) => database.exec(sql),
      get: (sql, values) => {
        const row = statement(sql).get(...values);
        return row && Object.values(row);
      },
      all: (sql, values) =>
        statement(sql)
          .all(...values)
          .map(Object.values<Value>),
      run: (sql, values) => void statement(sql).run(...values),
      change,
      changeAlone: (sql, values) => {
        try {
          return change(sql, values);
        } catch {
          return undefined;
        }
      },
      close: () => database.close(),
    };
  };
}

function libsql(): Open {
  let Database: LibsqlModule;
  try {
    Database = withQuickReport(() => requireNative("libsql") as LibsqlModule);
  } catch (cause) {
    throw new StoreError(
      `The file store needs SQLite, which Node ${process.version} does not bring: ` +
        "npm install libsql, or use Node 22.13 or later.",
      { outcome: "not_applied", retryable: false, store: "file", cause },
    );
  }
  return (path) => {
    const database = new Database(path);
    const writer = cached((sql) => database.prepare(sql));
    // Apart from the above: a `get` after a `run` of the same statement keeps the earlier values.
    const changer = cached((sql) => database.prepare(sql));
    const reader = cached((sql) => database.prepare(sql).raw(true));
    // libsql leaves a prepared statement that failed in progress, and SQLite commits nothing
    // meanwhile. The statement ends when it runs again, which succeeds within a transaction.
    let endFailed: (() => void) | undefined;
    return {
      // Not prepared, because it may fail.
      begin: () => {
        database.exec(BEGIN);
        endFailed?.();
        endFailed = undefined;
      },
      exec: (sql) => database.exec(sql),
      get: (sql, values) => reader(sql).get(values),
      all: (sql, values) => reader(sql).all(values),
      // Its own `run` takes longer: it also counts what changed.
      run: (sql, values) => void writer(sql).get(values),
      change: (sql, values) => changer(sql).run(values).changes,
      changeAlone: (sql, values) => {
        if (endFailed) return undefined;
        try {
          return changer(sql).run(values).changes;
        } catch {
          endFailed = () => changer(sql).run(values.map(() => null));
          return undefined;
        }
      },
      close: () => database.close(),
    };
  };
}

/**
 * libsql has Node write a whole report on this process, which takes longer than all else here, to
 * learn which C library it runs on. The loaded libraries say it as well.
 */
function withQuickReport<T>(load: () => T): T {
  const { report } = process;
  if (process.platform !== "linux" || !report) return load();
  const { getReport } = report;
  report.getReport = () => {
    const isMusl = readFileSync("/proc/self/maps", "latin1").includes("/ld-musl-");
    return { header: isMusl ? {} : { glibcVersionRuntime: "any" } };
  };
  try {
    return load();
  } finally {
    report.getReport = getReport;
  }
}

function cached<S>(prepare: (sql: string) => S): (sql: string) => S {
  const statements = new Map<string, S>();
  return (sql) => {
    let statement = statements.get(sql);
    if (!statement) {
      statement = prepare(sql);
      statements.set(sql, statement);
    }
    return statement;
  };
}

/** Node calls its SQLite experimental, on the error output of every program that loads it. */
function withoutWarning<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
