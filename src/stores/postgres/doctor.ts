/** What `holdfast doctor` asks of a database, and what it concludes. Only a doctor loads this. */
import {
  type Check,
  checksOver,
  danger,
  type Examination,
  type ExamineRequest,
  type Facts,
  type FailureCase,
  note,
  ok,
  type Verdict,
  warning,
} from "../../contract/examination.js";
import { whole } from "../../events/foreign-data.js";
import { grantsInMs } from "../../families/ledger/views.js";
import { pause } from "../../time/pause.js";
import type { Runtime } from "../../time/runtime.js";
import {
  CLIENT_FAILURES,
  type ClockReading,
  findingsOf,
  judgeDrift,
  judgeRoundTrip,
  judgeSkew,
  known,
  measureRoundTrip,
  type Probes,
  type RoundTrip,
  readClock,
  readFacts,
  seconds,
  twoHolders,
} from "../doctor.js";
import type { OwnConnection, Statement } from "./client.js";
import { channelOf, decode, executeStatement } from "./codec.js";
import { ENTRIES } from "./migration.js";
import { OWN_PATH } from "./session.js";

/** The state of the server, of the database and of the connection. */
interface PostgresFacts {
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

interface Settings {
  readonly version: number;
  readonly synchronousCommit: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
  /** The setting `synchronous_standby_names`. */
  readonly standbyNames: string;
  /**
   * The default of the role or the database, which applies if a pooler keeps us from setting ours.
   */
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
interface PostgresTools {
  readonly runtime: Runtime;
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
  from unnest('{${ENTRIES.map((entry) => entry.replace(/\(.*/, "")).join()}}'::text[]) as f
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

/** A heartbeat at a name that no client waits for changes nothing. */
const LOOK = { type: "heartbeat", key: "", client: "" } as const;

function postgresProbes(tools: PostgresTools): Probes<PostgresFacts> {
  const { runtime, hasSynchronousStandby, ask, openAnother } = tools;
  const read = async <T>(text: string): Promise<T> =>
    JSON.parse((await ask({ text: `${OWN_PATH} ${text}` })) ?? "null");
  return {
    settings: () => read(SETTINGS),
    schema: () => read(SCHEMA),
    owner: () => read(OWNER),
    pooler: () => readPooler(runtime, openAnother),
    standbys: async () => {
      const found = await read<Standbys & { hidden: number }>(STANDBYS);
      if (found.hidden === 0) return found;
      throw new Error("The role may not see the state of standbys: grant pg_monitor to it.");
    },
    snapshot: () => read(SNAPSHOT),
    connections: () => read(CONNECTIONS),
    queue: () => read(QUEUE),
    clock: () => readClock(runtime, async () => whole(await ask({ text: `${OWN_PATH} ${NOW}` }))),
    roundTrip: () => measureRoundTrip(runtime.clock, () => ask({ text: "select 1" })),
    grantsInMs: async () => {
      const statement = executeStatement("", [LOOK], hasSynchronousStandby);
      const [reply] = decode([LOOK], await ask(statement)).replies;
      if (reply instanceof Error) throw reply;
      return reply && "dueUs" in reply ? grantsInMs(reply) : 0;
    },
    isDeclared: () => hasSynchronousStandby,
  };
}

/** Listens on one idle connection, and notifies it from another one. */
async function readPooler(
  runtime: Runtime,
  openAnother: () => Promise<OwnConnection>,
): Promise<Pooler> {
  const listening = await openAnother();
  const notifying = await openAnother();
  try {
    const channel = channelOf(runtime.random.id());
    const heard = new Promise<true>((resolve) => {
      listening.onNotification((to) => to === channel && resolve(true));
    });
    const { backendPid } = listening;
    const pid = await listening.send({ text: `${OWN_PATH} select pg_backend_pid()` });
    await listening.send({ text: `listen "${channel}"` });
    await notifying.send({ text: `notify "${channel}"` });
    const late = pause(runtime.timers, MESSAGE_MS, true).then(() => false);
    const hearsMessages = await Promise.race([heard, late]);
    return { isPinned: pid === `${backendPid}` || hearsMessages, hearsMessages };
  } finally {
    listening.close();
    notifying.close();
  }
}

const MIN_VERSION = 130_000;
const MIGRATE = "Run holdfast migrate --store postgres://… --role ROLE --apply.";
/** A snapshot is old after one ttl, and too old after this many. */
const OLD_TTLS = 20;
const NEAR = 0.9;
const HALF = 0.5;

const check = checksOver<PostgresFacts>();

export const postgresChecks: readonly Check<PostgresFacts>[] = [
  check("postgres/version", ["settings"], ({ settings: { version } }) => {
    const major = Math.floor(version / 10_000);
    if (version >= MIN_VERSION) return ok(`The server is Postgres ${major}.`);
    const why = "The functions of the store need Postgres 13.";
    return danger(`The server is Postgres ${major}.`, why, "Update it to 13 or newer.");
  }),

  check("postgres/schema", ["schema"], ({ schema: { missing, mayCreate } }) => {
    if (missing.length === 0) return ok("The functions of the store are there.");
    const seen = `Functions are missing: ${missing.join(", ")}.`;
    if (missing.length === ENTRIES.length && mayCreate) {
      return note(seen, "The first lock makes the schema, since this role may.", MIGRATE);
    }
    return danger(seen, "Without them no lock can be taken.", MIGRATE);
  }),

  check("postgres/rights", ["schema"], ({ schema: { refused } }) => {
    if (refused.length === 0) return ok("The role may call all functions that are there.");
    const seen = `The role may not call ${refused.join(", ")}.`;
    return danger(seen, "Calls of these functions fail.", MIGRATE);
  }),

  check("postgres/owner", ["owner"], ({ owner: found }) => {
    if (!found) return ok("No other role has made the schema.");
    const { owner, foreign, creator, writer } = found;
    const why = "That role could have its code run with the rights of the owner of the schema.";
    if (foreign !== null) {
      const seen = `The schema belongs to ${owner}, but ${foreign} is in it.`;
      return danger(seen, why, "Find out why it is there, and drop it.");
    }
    if (creator !== null) {
      const seen = `The schema belongs to ${owner}, but ${creator} may create in it.`;
      return danger(seen, why, `revoke create on schema holdfast from ${creator}.`);
    }
    if (writer === null) return ok(`The schema and all that is in it belong to ${owner}.`);
    const seen = `The schema belongs to ${owner}, but ${writer} may change its tables.`;
    return danger(seen, why, `revoke all on all tables in schema holdfast from ${writer}.`);
  }),

  check("postgres/durability", ["settings"], ({ settings }) => {
    const { synchronousCommit, fsync, fullPageWrites } = settings;
    const seen = `synchronous_commit is ${synchronousCommit}, fsync ${fsync}`;
    if (fsync !== "on" || fullPageWrites !== "on") {
      return warning(
        `${seen}, full_page_writes ${fullPageWrites}.`,
        "A crash of the machine may damage the database, and the locks with it.",
        "Set fsync = on and full_page_writes = on.",
      );
    }
    if (synchronousCommit !== "off") return ok(`${seen}.`);
    return warning(
      `${seen}.`,
      "A crash may lose the last grants: after it, free locks wait for the longest ttl.",
      "Set synchronous_commit = on for the role of the locks.",
    );
  }),

  check("postgres/grants", ["grantsInMs"], ({ grantsInMs }) => {
    if (grantsInMs === 0) return ok("Free locks are granted.");
    return warning(
      `No free lock is granted for another ${seconds(grantsInMs)}.`,
      "Leases that a crash or a failover may have lost must expire first.",
      "Wait. A synchronous standby (hasSynchronousStandby) and a shorter ttlMs avoid it.",
    );
  }),

  check("postgres/standbys", ["settings", "standbys", "isDeclared"], (facts) =>
    judgeStandbys(facts),
  ),

  check("postgres/pooler", ["pooler"], ({ pooler: { isPinned } }) => {
    if (isPinned) return ok("The connection has a server process of its own.");
    return warning(
      "A pooler lends server processes for one transaction.",
      "Notifications do not arrive there: waiters ask every 200 ms instead.",
      "Connect directly, or through a pooler in session mode.",
    );
  }),

  check("postgres/messages", ["pooler"], ({ pooler: { hearsMessages } }) => {
    if (hearsMessages) return ok("A notification to this process arrived.");
    return warning(
      "A notification to this process did not arrive.",
      "Waiters are not told when a lock is handed to them, and ask every 200 ms.",
      "Connect directly, or through a pooler in session mode.",
    );
  }),

  check("postgres/notify-queue", ["queue"], ({ queue: { usage } }) => {
    const seen = `The NOTIFY queue is ${Math.round(usage * 100)} % full.`;
    if (usage < HALF) return ok(seen);
    return warning(
      seen,
      "From 90 % on, waiters are not told when a lock is handed to them, and ask after offerMs.",
      "End the oldest transaction of a session that listens: see pg_stat_activity.",
    );
  }),

  check("postgres/isolation", ["settings", "pooler"], ({ settings: { isolation }, pooler }) => {
    const seen = `The default isolation level is ${isolation}`;
    if (pooler.isPinned) return ok("The store sets the isolation level of its connection.");
    if (isolation === "read committed") return ok(`${seen}.`);
    return danger(
      `${seen}, and a pooler keeps the store from changing it.`,
      "Every call fails at this level.",
      "alter role ROLE set default_transaction_isolation = 'read committed'.",
    );
  }),

  check("postgres/snapshots", ["snapshot"], ({ snapshot }, ttlMs) => {
    if (!snapshot || snapshot.ageMs < ttlMs) return ok("No old snapshot keeps dead rows alive.");
    const { ageMs, holder } = snapshot;
    const seen = `A snapshot is ${seconds(ageMs)} old (${holder}).`;
    const why = "Dead versions of rows stay as long: a lock that is used often becomes slow.";
    const remedy = "End that transaction; set idle_in_transaction_session_timeout.";
    return ageMs < ttlMs * OLD_TTLS ? note(seen, why, remedy) : warning(seen, why, remedy);
  }),

  check("postgres/connections", ["connections"], ({ connections: { used, most } }) => {
    const seen = `${used} of ${most} connections are in use.`;
    if (used < most * NEAR) return ok(seen);
    const why = "A process that finds no free connection cannot lock, nor renew after a reconnect.";
    return warning(seen, why, "Raise max_connections, or use smaller pools.");
  }),

  check("postgres/clock-drift", ["clock"], ({ clock }) => judgeDrift(clock)),
  check("postgres/clock-skew", ["clock"], ({ clock }) => judgeSkew(clock)),
  check("postgres/round-trip", ["roundTrip"], ({ roundTrip }, ttlMs) =>
    judgeRoundTrip(roundTrip, ttlMs),
  ),
];

function judgeStandbys({
  settings,
  standbys,
  isDeclared,
}: Pick<PostgresFacts, "settings" | "standbys" | "isDeclared">): Verdict {
  const { count, synchronous } = standbys;
  const seen = `Standbys: ${count}; synchronous ones: ${synchronous}`;
  if (isDeclared && !waitsForStandby(settings)) {
    return danger(
      `hasSynchronousStandby is set, but no commit waits for a standby.`,
      "A failover may lose grants, and free names are granted at once after it: two may hold.",
      "Set synchronous_standby_names and synchronous_commit = on, or drop the option.",
    );
  }
  if (waitsForStandby(settings) && synchronous === 0) {
    return danger(
      `${seen}; synchronous_standby_names is ${settings.standbyNames}.`,
      "Every commit waits for a standby that is not there: no lock can be taken.",
      "Start the standby, or take it out of synchronous_standby_names.",
    );
  }
  if (count === 0 || isDeclared) return ok(`${seen}.`);
  const why = "After a promotion free locks wait for the longest ttl, at least a minute.";
  const remedy =
    synchronous > 0
      ? "Set hasSynchronousStandby if only a synchronous standby is ever promoted."
      : "Use a synchronous standby and hasSynchronousStandby where that is too long.";
  return note(`${seen}.`, why, remedy);
}

function waitsForStandby({ standbyNames, synchronousCommit }: Settings): boolean {
  return standbyNames !== "" && !/^(off|local)$/.test(synchronousCommit);
}

export async function examinePostgres(
  tools: PostgresTools,
  { ttlMs, signal }: ExamineRequest,
): Promise<Examination> {
  const facts = await readFacts(postgresProbes(tools), { runtime: tools.runtime, signal });
  return {
    store: "postgres",
    findings: findingsOf(postgresChecks, facts, ttlMs),
    failureCases: postgresFailureCases(facts, ttlMs),
  };
}

/** After a crash, free names wait for the longest ttl, but at least this long. */
const MIN_WAIT_MS = 60_000;

/** The failure cases of a database with these facts. */
function postgresFailureCases(facts: Facts<PostgresFacts>, ttlMs: number): FailureCase[] {
  const two = twoHolders(ttlMs);
  const wait = `free locks wait for ${seconds(Math.max(MIN_WAIT_MS, ttlMs))} or more`;
  return [
    ...CLIENT_FAILURES,
    restart(known(facts.settings), wait),
    promotion(known(facts.isDeclared) === true, wait),
    {
      event: "The old primary goes on after a promotion",
      outcome: `Two servers accept writes: ${two}.`,
      isSafe: false,
    },
    {
      event: "The clock of the server jumps ahead",
      outcome: `Leases end early: ${two}.`,
      isSafe: false,
    },
  ];
}

function restart(settings: Settings | undefined, wait: string): FailureCase {
  const event = "The server restarts or crashes";
  if (!settings) {
    return { event, outcome: "Not known: the settings could not be read.", isSafe: false };
  }
  const { fsync, synchronousCommit } = settings;
  if (fsync !== "on") {
    const outcome = `Locks are kept, and ${wait}; a crash of the machine may damage them.`;
    return { event, outcome, isSafe: false };
  }
  const outcome = synchronousCommit === "off" ? `Locks are kept, and ${wait}.` : "Locks are kept.";
  return { event, outcome, isSafe: true };
}

function promotion(isDeclared: boolean, wait: string): FailureCase {
  const event = "A standby takes over";
  const outcome = isDeclared ? "Locks are kept." : `Locks are kept, and ${wait}.`;
  return { event, outcome, isSafe: true };
}
