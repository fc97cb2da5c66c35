/** The schema in the database: its set-up, its version, and the rights of a role. */
import { invalidValue, StoreError } from "../../errors/index.js";
import { isForeignSchema, postgresError, STORE } from "./errors.js";
import { SCHEMA } from "./schema.generated.js";
import { OWN_PATH, type Session } from "./session.js";

/** Function names end with the version, so two versions can exist side by side. */
const VERSION = 3;

/** The functions that a role needs, the fence among them. All others are called by these. */
export const ENTRIES: readonly string[] = [
  `execute_${VERSION}(text, boolean, holdfast.command_${VERSION}[], text[], text[])`,
  `list_${VERSION}(text, text, text, integer)`,
  `sweep_${VERSION}(integer)`,
  "fence(text, bigint, text)",
];

/**
 * A snapshot taken before the wait for the lock would not show what another role has created since.
 */
const ISOLATION = "set transaction isolation level read committed;";
/** The word "holdfast" as a number. A second migration waits for the first one. */
const LOCK = "select pg_advisory_xact_lock(7525352680829580148);";
/** Hides the notices about objects that exist already. */
const QUIET = "select set_config('client_min_messages', 'warning', true);";

/** The version of the newest functions; null where there are none. It needs no rights. */
const NEWEST = `${OWN_PATH}
  select max(substring(p.proname from '^execute_([0-9]+)$')::integer)
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'holdfast'`;

const COMMAND = "holdfast migrate --store postgres://… --apply";

/** The terms of a migration. */
export interface PostgresMigrationOptions {
  /** A role that may use locks and fences, and nothing else of the schema. */
  readonly role?: string;
}

/**
 * Returns the SQL that `holdfast migrate` prints. It creates the schema `holdfast` or brings it up
 * to date. It can be run repeatedly, and while programs use the schema.
 */
export function postgresMigration({ role }: PostgresMigrationOptions = {}): string {
  return `begin;\n${statements(role)}commit;\n`;
}

/** Brings the schema up to date, in one transaction. */
export async function migrate(session: Pick<Session, "send">, role?: string): Promise<void> {
  try {
    // Several statements in one message are one transaction, and need no rollback.
    await session.send({ text: statements(role) });
  } catch (cause) {
    throw postgresError(cause, "running");
  }
}

/**
 * Creates the schema for a store that did not find its functions. Throws if there is a schema of
 * another version, which only `holdfast migrate` may change.
 */
export async function setUp(
  session: Pick<Session, "send">,
  needed: number = VERSION,
): Promise<void> {
  const newest = Number(await session.send({ text: NEWEST }));
  // Another process has made it meanwhile.
  if (newest === needed) return;
  if (newest !== 0) throw otherVersion(newest, needed);
  try {
    await migrate(session);
  } catch (cause) {
    if (!(cause instanceof StoreError) || cause.retryable || isForeignSchema(cause)) throw cause;
    throw refused(
      "The schema holdfast is missing in this database, and this role cannot make it: run " +
        `${COMMAND}, as a role that may create schemas.`,
      cause,
    );
  }
}

function statements(role: string | undefined): string {
  const rights = role === undefined ? [] : grants(role);
  return [ISOLATION, OWN_PATH, LOCK, QUIET, SCHEMA, ...rights, ""].join("\n");
}

function grants(role: string): readonly string[] {
  if (role === "" || role.includes("\0")) {
    throw invalidValue("role", role, "must be the name of a role");
  }
  const quoted = `"${role.replaceAll('"', '""')}"`;
  return [
    `grant usage on schema holdfast to ${quoted};`,
    ...ENTRIES.map((entry) => `grant execute on function holdfast.${entry} to ${quoted};`),
  ];
}

function otherVersion(installed: number, needed: number): StoreError {
  const remedy =
    installed < needed
      ? `Run ${COMMAND} with this version of Holdfast`
      : "Use a newer version of Holdfast";
  return refused(
    `The schema holdfast in this database has version ${installed}, and this program needs ` +
      `version ${needed}. ${remedy}.`,
  );
}

function refused(message: string, cause?: StoreError): StoreError {
  const context = { outcome: "not_applied", retryable: false, store: STORE } as const;
  return new StoreError(message, { ...context, ...(cause && { cause }) });
}
