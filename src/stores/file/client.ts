/**
 * The part of SQLite that the store uses, from one of two libraries: the one built into Node (22.13
 * and later), or `libsql`. Both can use the same file at the same time.
 */
import { readFileSync } from "node:fs";
import { StoreError } from "../../errors/index.js";
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
  close(): void;
}

interface BuiltInStatement {
  get(...values: Value[]): Record<string, Value> | undefined;
  all(...values: Value[]): Record<string, Value>[];
  run(...values: Value[]): unknown;
}

interface LibsqlStatement {
  raw(isRaw: boolean): LibsqlStatement;
  get(values: Value[]): Row | undefined;
  all(values: Value[]): Row[];
}

type Constructor<Statement> = new (
  path: string,
) => { exec(sql: string): void; prepare(sql: string): Statement; close(): void };

type Library =
  | { readonly name: "node:sqlite"; readonly Database: Constructor<BuiltInStatement> }
  | { readonly name: "libsql"; readonly Database: Constructor<LibsqlStatement> };

/**
 * Two SQLite libraries in one process would break each other's file locks: closing a file drops all
 * locks of the process. So all copies of this package in a process, of whichever version, share the
 * library that the first one loaded.
 */
const SHARED = Symbol.for("holdfast.sqlite-library");

export function openSqlite(path: string): Sqlite {
  const shared = globalThis as { [SHARED]?: Library };
  shared[SHARED] ??= builtIn() ?? libsql();
  const library = shared[SHARED];
  return library.name === "libsql"
    ? openLibsql(library.Database, path)
    : openBuiltIn(library.Database, path);
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
    // SQLite has already rolled back, as it does when the disk is full.
  }
}

/** The primary result code of a failed call; undefined if the error is not from SQLite. */
export function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, rawCode } = error as { errcode?: unknown; rawCode?: unknown };
  const code = errcode ?? rawCode;
  return typeof code === "number" ? code & 0xff : undefined;
}

function builtIn(): Library | undefined {
  const module = withoutWarning(
    () =>
      process.getBuiltinModule("node:sqlite") as unknown as
        | { DatabaseSync: Constructor<BuiltInStatement> }
        | undefined,
  );
  return module && { name: "node:sqlite", Database: module.DatabaseSync };
}

function openBuiltIn(Database: Constructor<BuiltInStatement>, path: string): Sqlite {
  const database = new Database(path);
  const statement = cached((sql) => database.prepare(sql));
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
    close: () => database.close(),
  };
}

function libsql(): Library {
  try {
    const Database = withQuickReport(() => requireNative("libsql"));
    return { name: "libsql", Database: Database as Constructor<LibsqlStatement> };
  } catch (cause) {
    throw new StoreError(
      `The file store needs SQLite, and Node ${process.version} has none built in: ` +
        "npm install libsql, or use Node 22.13 or later.",
      { outcome: "not_applied", retryable: false, store: "file", cause },
    );
  }
}

function openLibsql(Database: Constructor<LibsqlStatement>, path: string): Sqlite {
  const database = new Database(path);
  const writer = cached((sql) => database.prepare(sql));
  const reader = cached((sql) => database.prepare(sql).raw(true));
  return {
    // Not prepared: libsql leaves a prepared statement that failed in progress, and SQLite commits
    // nothing until that statement ends.
    begin: () => database.exec(BEGIN),
    exec: (sql) => database.exec(sql),
    get: (sql, values) => reader(sql).get(values),
    all: (sql, values) => reader(sql).all(values),
    // Its own `run` takes longer: it also counts what changed.
    run: (sql, values) => void writer(sql).get(values),
    close: () => database.close(),
  };
}

/**
 * To learn which C library it runs on, libsql has Node write a whole report on this process, which
 * takes longer than everything else here. The list of loaded libraries tells as well.
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

/** Node warns every program that loads its SQLite that it is experimental. */
function withoutWarning<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
