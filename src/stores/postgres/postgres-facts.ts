import { whole } from "../../foreign-data.js";
import { pause } from "../../time/pause.js";
import type { Port } from "../../time/port.js";
import { type ClockReading, readClock } from "../examining/clock-reading.js";
import type { Probes } from "../examining/read-facts.js";
import { measureRoundTrip, type RoundTrip } from "../examining/round-trip.js";
import { channelOf } from "./codec.js";
import type { OwnConnection, Statement } from "./driver.js";

/** The state of the server, of the database and of the connection. */
export interface PostgresFacts {
  readonly settings: Settings;
  readonly schema: Schema;
  readonly pooler: Pooler;
  readonly standbys: Standbys;
  readonly snapshot: Snapshot | null;
  readonly connections: { readonly used: number; readonly most: number };
  readonly clock: ClockReading;
  readonly roundTrip: RoundTrip;
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
const SCHEMA = `select json_build_object(
  'missing', coalesce(json_agg(f) filter (where p.oid is null), '[]'),
  'refused', coalesce(json_agg(f) filter (where p.oid is not null and not (
    has_function_privilege(p.oid, 'execute') and has_schema_privilege(n.oid, 'usage'))), '[]'),
  'mayCreate', has_database_privilege(current_database(), 'create'))::text
  from unnest($1::text[]) as f
  left join pg_catalog.pg_namespace n on n.nspname = 'holdfast'
  left join pg_catalog.pg_proc p on p.pronamespace = n.oid and p.proname = f`;

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

const NOW = "select floor(extract(epoch from clock_timestamp()) * 1000000)::bigint::text";

export function postgresProbes(
  { port, hasSynchronousStandby, ask, openAnother }: PostgresTools,
  functions: readonly string[],
): Probes<PostgresFacts> {
  const read = async <T>(text: string, values?: readonly string[]): Promise<T> =>
    JSON.parse((await ask(values ? { text, values } : { text })) ?? "null");
  return {
    settings: () => read(SETTINGS),
    schema: () => read(SCHEMA, [arrayText(functions)]),
    pooler: () => readPooler(port, openAnother),
    standbys: async () => {
      const found = await read<Standbys & { hidden: number }>(STANDBYS);
      if (found.hidden === 0) return found;
      throw new Error("The role may not see the state of standbys: grant pg_monitor to it.");
    },
    snapshot: () => read(SNAPSHOT),
    connections: () => read(CONNECTIONS),
    clock: () => readClock(port, async () => whole(await ask({ text: NOW }))),
    roundTrip: () => measureRoundTrip(port.clock, () => ask({ text: "select 1" })),
    isDeclared: () => hasSynchronousStandby,
  };
}

function arrayText(items: readonly string[]): string {
  return `{${items.map((item) => `"${item}"`).join(",")}}`;
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
    const pid = await listening.send({ text: "select pg_backend_pid()::text" });
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
