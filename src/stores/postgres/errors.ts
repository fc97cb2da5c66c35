/** The meaning of the errors of Postgres and its clients for a call, and advice for the user. */
import { StoreError } from "../../errors/index.js";
import { Unreadable } from "../../events/foreign-data.js";
import { tlsAdvice } from "../tls-advice.js";

interface Meaning {
  /** The beginning of the SQLSTATE. */
  readonly state: string;
  readonly advice: string;
  readonly retryable: boolean;
  /** An error of this state always ends its transaction, in every language of the server. */
  readonly isPlainError?: boolean;
}

export const STORE: string = "postgres";
const MIGRATE = "run holdfast migrate --store postgres://… --apply as a role that may create it";

const RESTORE = "restore the schema from a backup, or drop it while no program uses it";

/** The first meaning whose state matches counts. */
const MEANINGS: readonly Meaning[] = [
  again("40001", "transactions met at the same rows"),
  again("40P01", "transactions met at the same rows"),
  again("55P03", "another transaction keeps a row of the locks locked: see pg_stat_activity"),
  again("57014", "the statement was cancelled, or statement_timeout is too short"),
  again("25006", "this server is read-only: connect to the one that accepts writes"),
  later("57P01", "an administrator ended the connection, or the server shuts down"),
  later("57P02", "the server crashed"),
  later("57P03", "the server is starting, stopping or recovering"),
  later("53300", "all connections of the server are taken: raise max_connections, or use fewer"),
  again("54000", "the NOTIFY queue is full: end the oldest transaction in pg_stat_activity"),
  later("53100", "the disk of the server is full"),
  later("53", "the server lacks resources"),
  never("42501", "the role lacks rights: docs/stores/postgres.md has the GRANT lines"),
  never("42883", `the functions of this version are missing: ${MIGRATE}`),
  never("3F000", `the schema holdfast is missing: ${MIGRATE}`),
  never("LF003", `the tables are not complete: ${MIGRATE}`),
  never("LF004", "migrate as the owner of the schema holdfast, or drop what nobody needs there"),
  never("LF005", "drop the schema holdfast while no program uses locks, and migrate again"),
  never("LF002", "set default_transaction_isolation of the role to 'read committed'"),
  never("42P01", `a table of the schema holdfast is missing: ${MIGRATE}`),
  never("42703", `a column of a table of the schema holdfast is missing: ${RESTORE}`),
  never("42704", `a type of the schema holdfast is missing: ${RESTORE}`),
  never("3D000", "the database does not exist: check its name"),
  never("28", "check the user name, the password and pg_hba.conf"),
];

function again(state: string, advice: string): Meaning {
  return { state, advice, retryable: true, isPlainError: true };
}

function later(state: string, advice: string): Meaning {
  return { state, advice, retryable: true };
}

function never(state: string, advice: string): Meaning {
  return { state, advice, retryable: false, isPlainError: true };
}

/**
 * Returns our error for a statement or a connection attempt that failed. Nothing was applied if no
 * statement was sent, or if the server reports that the statement failed, because it then rolls the
 * transaction back. The outcome is unknown after a FATAL error or a PANIC, which may come after the
 * commit, and after a connection that ended without an error.
 */
export function postgresError(cause: unknown, stage: "connecting" | "running"): StoreError {
  if (cause instanceof StoreError || cause instanceof Unreadable) return cause as StoreError;
  const { state, severity, text } = read(cause);
  const meaning = MEANINGS.find((one) => state.startsWith(one.state));
  const tls = tlsAdvice(text);
  const { advice = tls, retryable = tls === null } = meaning ?? {};
  const isRolledBack = severity === "ERROR" || meaning?.isPlainError === true;
  const outcome = stage === "connecting" || isRolledBack ? "not_applied" : "unknown";
  const lead = tls === null ? "Postgres refused" : "No secure connection to Postgres";
  const said = state === "" ? text : `${state}: ${text}`;
  const message = advice ? `${lead}: ${advice} (${said}).` : `Postgres failed: ${said}.`;
  return new StoreError(message, { outcome, retryable, cause: discreet(cause), store: STORE });
}

/** The server rolled the transaction back because of another one, so a retry may succeed. */
export function isCollision(cause: unknown): boolean {
  return /^40(001|P01)$/.test(read(cause).state);
}

/** The functions, their types, the schema or a table of the store are missing. */
export function isNotSetUp(cause: unknown): boolean {
  return /^(42883|42704|3F000|42P01)$/.test(read(cause).state);
}

/** A row has numbers that no client wrote. A batch of several commands says so in its replies. */
export function isDamage(cause: unknown): boolean {
  return /^2[23]/.test(read(cause).state);
}

/** No server answered: neither a refusal of the server, nor one of this store. */
export function isUnreachable({ cause }: StoreError): boolean {
  return cause !== undefined && read(cause).state === "";
}

/** The schema, or something in it, belongs to another role, or has tables of another layout. */
export function isForeignSchema({ cause }: StoreError): boolean {
  return /^LF00[45]$/.test(read(cause).state);
}

function read(cause: unknown): { state: string; severity: string; text: string } {
  if (!(cause instanceof Error)) return { state: "", severity: "", text: String(cause) };
  const { code = "", severity = "" } = cause as { code?: string; severity?: string };
  // Errors of the system have a code as well, such as ECONNREFUSED.
  const state = /^[0-9A-Z]{5}$/.test(code) && severity !== "" ? code : "";
  // A host name with several addresses fails without a text.
  const text = (cause.message || code || cause.constructor.name).replace(/\.$/, "");
  return { state, severity, text };
}

/** The members that an error may show. Texts and parameters of statements name owners. */
const SHOWN = ["code", "severity", "hint", "routine", "errno", "syscall", "address", "port"];

/** A copy without the rest, because the members that `postgres` adds cannot be removed. */
function discreet(cause: unknown): unknown {
  if (!(cause instanceof Error) || cause instanceof AggregateError) return cause;
  const copy = new Error(cause.message);
  const names = [...SHOWN, "name", "stack"].filter((name) => Reflect.has(cause, name));
  for (const name of names) {
    const value: unknown = Reflect.get(cause, name);
    Object.defineProperty(copy, name, { value, enumerable: SHOWN.includes(name) });
  }
  return copy;
}
