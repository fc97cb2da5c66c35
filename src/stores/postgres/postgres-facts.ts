import { whole } from "../../foreign-data.js";
import { pause } from "../../time/pause.js";
import type { Port } from "../../time/port.js";
import { grantsInMs } from "../arbiter/views.js";
import { type ClockReading, readClock } from "../examining/clock-reading.js";
import type { Probes } from "../examining/read-facts.js";
import { measureRoundTrip, type RoundTrip } from "../examining/round-trip.js";
import { channelOf, decode, encode } from "./codec.js";
import type { OwnConnection, Statement } from "./driver.js";
import { OWN_PATH } from "./session.js";

/** The state of the server, of the database and of the connection. */
export interface PostgresFacts {
  readonly settings: Settings;
  readonly schema: Schema;
  /** Null where there is no schema yet. */
  readonly owner: Owner | null;
  readonly pooler: Pooler;
  readonly standbys: Standbys;
  readonly snapshot: Snapshot | null;
  readonly connections: { readonly used: number; readonly most: number };
  /** The part of the NOTIFY queue that is in use, from 0 to 1. */
  readonly queue: { readonly usage: number };
  readonly clock: ClockReading;
  readonly roundTrip: RoundTrip;
  /** The time until free names are granted; 0: they are. */
  readonly grantsInMs: number;
  /** The option `hasSynchronousStandby`. */
  readonly isDeclared: boolean;
}

export interface Settings {
  readonly version: number;
  readonly synchronousCommit: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
  /** The setting `synchronous_standby_names`. */
  readonly standbyNames: string;
  /** The default of the role or the database, where a pooler keeps ours from being set. */
  readonly isolation: string;
}

/** The functions that the store needs. */
interface Schema {
  readonly missing: readonly string[];
  readonly refused: readonly string[];
  readonly mayCreate: boolean;
}

/** The roles whose code may run in the functions of the store. */
interface Owner {
  readonly owner: string;
  /** An object of another role in the schema, if any. */
  readonly foreign: string | null;
  /** Another role that may create in the schema, if any. */
  readonly creator: string | null;
  /** Another role that may change the tables or make triggers on them, if any. */
  readonly writer: string | null;
}

/** How a connection of the store reaches the server. */
interface Pooler {
  /** The connection has a server process of its own. */
  readonly isPinned: boolean;
  /** A notification of another connection arrived. */
  readonly hearsMessages: boolean;
}

interface Standbys {
  readonly count: number;
  readonly synchronous: number;
}

/** The oldest snapshot that keeps dead rows alive. */
interface Snapshot {
  readonly ageMs: number;
  /** The session, the slot or the prepared transaction that holds it. */
  readonly holder: string;
}

/** The parts of the store that the probes use. */
export interface PostgresTools {
  readonly port: Port;
  readonly hasSynchronousStandby: boolean;
  ask(statement: Statement): Promise<string | null>;
  /** One more connection to the same server. */
  openAnother(): Promise<OwnConnection>;
}

const MESSAGE_MS = 1_000;

const SETTINGS = `select json_build_object(
  'version', current_setting('server_version_num')::int,
  'synchronousCommit', current_setting('synchronous_commit'),
  'fsync', current_setting('fsync'),
  'fullPageWrites', current_setting('full_page_writes'),
  'standbyNames', current_setting('synchronous_standby_names'),
  'isolation', current_setting('default_transaction_isolation'))::text`;

/** The catalogue shows functions of a schema that the role may not use. */
const schemaOf = (functions: readonly string[]): string => `select json_build_object(
  'missing', coalesce(json_agg(f) filter (where p.oid is null), '[]'),
  'refused', coalesce(json_agg(f) filter (where p.oid is not null and not (
    has_function_privilege(p.oid, 'execute') and has_schema_privilege(n.oid, 'usage'))), '[]'),
  'mayCreate', has_database_privilege(current_database(), 'create'))::text
  from unnest('{${functions.join()}}'::text[]) as f
  left join pg_catalog.pg_namespace n on n.nspname = 'holdfast'
  left join pg_catalog.pg_proc p on p.pronamespace = n.oid and p.proname = f`;

/**
 * The owner of the schema; another role's object in it, or trigger on a table; another role that
 * may create in it; another role that may change its tables, or make a trigger on them. Each could
 * make the functions of the store run its own code.
 */
const OWNER = `select json_build_object(
  'owner', pg_get_userbyid(n.nspowner),
  'foreign', (select format('%s of %s', o.name, pg_get_userbyid(o.owner)) from (
    select p.proowner as owner, p.oid::regprocedure::text as name, p.pronamespace as schema
      from pg_proc p
    union all select c.relowner, c.oid::regclass::text, c.relnamespace from pg_class c
    union all select t.typowner, t.oid::regtype::text, t.typnamespace from pg_type t
    union all select p.oprowner, p.oid::regoperator::text, p.oprnamespace from pg_operator p
    union all select p.proowner, format('the trigger %I on %s', t.tgname, c.oid::regclass),
      c.relnamespace from pg_trigger t join pg_class c on c.oid = t.tgrelid
      join pg_proc p on p.oid = t.tgfoid where not t.tgisinternal
    ) o where o.schema = n.oid and o.owner <> n.nspowner limit 1),
  'creator', (select case a.grantee when 0 then 'every role' else pg_get_userbyid(a.grantee) end
    from aclexplode(n.nspacl) a
    where a.privilege_type = 'CREATE' and a.grantee <> n.nspowner limit 1),
  'writer', (select case a.grantee when 0 then 'every role' else pg_get_userbyid(a.grantee) end
    from pg_class c, aclexplode(c.relacl) a where c.relnamespace = n.oid
    and a.privilege_type <> 'SELECT' and a.grantee <> c.relowner limit 1))::text
  from pg_namespace n where n.nspname = 'holdfast'`;

/** A role without pg_monitor sees the rows of other roles, but not their contents. */
const STANDBYS = `select json_build_object('count', count(*),
  'synchronous', count(*) filter (where sync_state in ('sync', 'quorum')),
  'hidden', count(*) filter (where state is null))::text
  from pg_stat_replication where application_name <> 'pg_basebackup'`;

const SNAPSHOT = `select json_build_object(
  'ageMs', extract(epoch from clock_timestamp() - since) * 1000,
  'holder', holder)::text from (
  select xact_start as since, format('process %s of %s, %s', pid, usename, state) as holder
    from pg_stat_activity where backend_xmin is not null and pid <> pg_backend_pid()
    and xact_start is not null
  union all select prepared, format('the prepared transaction %s', gid) from pg_prepared_xacts
  ) as snapshots order by since limit 1`;

const CONNECTIONS = `select json_build_object(
  'used', (select sum(numbackends) from pg_stat_database),
  'most', current_setting('max_connections')::int
    - current_setting('superuser_reserved_connections')::int)::text`;

const QUEUE = "select json_build_object('usage', pg_notification_queue_usage())::text";

const NOW = "select floor(extract(epoch from clock_timestamp()) * 1000000)::bigint::text";

const EXECUTE = {
  text: "select holdfast.execute_1($1::pg_catalog.text, $2::pg_catalog.text[])",
};
/** A touch at a name that no client waits for changes nothing. */
const LOOK = { type: "touch", key: "", client: "" } as const;

export function postgresProbes(
  { port, hasSynchronousStandby, ask, openAnother }: PostgresTools,
  functions: readonly string[],
): Probes<PostgresFacts> {
  const read = async <T>(text: string): Promise<T> =>
    JSON.parse((await ask({ text: `${OWN_PATH} ${text}` })) ?? "null");
  return {
    settings: () => read(SETTINGS),
    schema: () => read(schemaOf(functions)),
    owner: () => read(OWNER),
    pooler: () => readPooler(port, openAnother),
    standbys: async () => {
      const found = await read<Standbys & { hidden: number }>(STANDBYS);
      if (found.hidden === 0) return found;
      throw new Error("The role may not see the state of standbys: grant pg_monitor to it.");
    },
    snapshot: () => read(SNAPSHOT),
    connections: () => read(CONNECTIONS),
    queue: () => read(QUEUE),
    clock: () => readClock(port, async () => whole(await ask({ text: `${OWN_PATH} ${NOW}` }))),
    roundTrip: () => measureRoundTrip(port.clock, () => ask({ text: "select 1" })),
    grantsInMs: async () => {
      const values = ["", encode([LOOK], hasSynchronousStandby)];
      const [reply] = decode([LOOK], await ask({ ...EXECUTE, values })).replies;
      if (reply instanceof Error) throw reply;
      return reply && "dueUs" in reply ? grantsInMs(reply) : 0;
    },
    isDeclared: () => hasSynchronousStandby,
  };
}

/** A connection that listens, silent between transactions, and another one that notifies it. */
async function readPooler(port: Port, openAnother: () => Promise<OwnConnection>): Promise<Pooler> {
  const listening = await openAnother();
  const notifying = await openAnother();
  try {
    const channel = channelOf(port.random.id());
    const heard = new Promise<true>((resolve) => {
      listening.onNotification((to) => to === channel && resolve(true));
    });
    const { backendPid } = listening;
    const pid = await listening.send({ text: `${OWN_PATH} select pg_backend_pid()` });
    await listening.send({ text: `listen "${channel}"` });
    await notifying.send({ text: `notify "${channel}"` });
    const late = pause(port.timers, MESSAGE_MS, true).then(() => false);
    const hearsMessages = await Promise.race([heard, late]);
    return { isPinned: pid === `${backendPid}` || hearsMessages, hearsMessages };
  } finally {
    listening.close();
    notifying.close();
  }
}
