import { type Check, checksOver, danger, note, ok, type Verdict, warning } from "../../checks.js";
import type { Examination, ExamineRequest } from "../../examination.js";
import { judgeDrift, judgeSkew } from "../examining/clock-reading.js";
import { findingsOf, readFacts } from "../examining/read-facts.js";
import { judgeRoundTrip } from "../examining/round-trip.js";
import { seconds } from "../examining/survivals.js";
import { ENTRIES } from "./migration.js";
import {
  type PostgresFacts,
  type PostgresTools,
  postgresProbes,
  type Settings,
} from "./postgres-facts.js";
import { postgresSurvivals } from "./survivals.js";

const LEAST_VERSION = 130_000;
const MIGRATE = "Run holdfast migrate --store postgres://… --role ROLE --apply.";
/** A snapshot is old after one ttl, and too old after so many. */
const OLD_TTLS = 20;
const NEAR = 0.9;
const HALF = 0.5;

const check = checksOver<PostgresFacts>();

export const postgresChecks: readonly Check<PostgresFacts>[] = [
  check("postgres/version", ["settings"], ({ settings: { version } }) => {
    const major = Math.floor(version / 10_000);
    if (version >= LEAST_VERSION) return ok(`The server is Postgres ${major}.`);
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
  const functions = ENTRIES.map((entry) => entry.replace(/\(.*/, ""));
  const facts = await readFacts(postgresProbes(tools, functions), { port: tools.port, signal });
  return {
    store: "postgres",
    findings: findingsOf(postgresChecks, facts, ttlMs),
    survivals: postgresSurvivals(facts, ttlMs),
  };
}
