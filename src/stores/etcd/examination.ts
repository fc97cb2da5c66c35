import { type Check, checksOver, danger, note, ok, warning } from "../../checks.js";
import type { Examination, ExamineRequest } from "../../examination.js";
import { findingsOf, readFacts } from "../examining/read-facts.js";
import { judgeRoundTrip } from "../examining/round-trip.js";
import { type EtcdFacts, type EtcdTools, etcdProbes } from "./etcd-facts.js";
import { type Metrics, quantile } from "./metrics.js";
import { etcdSurvivals } from "./survivals.js";
import { mayEndLiveLeases, partsOf, UPGRADE } from "./version.js";

const REACH_MS = 3_000;
/** With the default time-outs of etcd an election takes up to two seconds. */
const LEAST_TTL_MS = 5_000;
const NEAR_QUOTA = 0.8;
/** The interval of heartbeats: a leader whose disk is slower is deposed now and then. */
const SLOW_FSYNC_SECONDS = 0.1;
const NOTED_FSYNC_SECONDS = 0.01;
const MANY_ELECTIONS = 5;
const MEGABYTE = 1024 * 1024;

const check = checksOver<EtcdFacts>();

export const etcdChecks: readonly Check<EtcdFacts>[] = [
  check("etcd/version", ["status"], ({ status: { version } }) => {
    const [major, minor, patch] = partsOf(version);
    const seen = `The server is etcd ${version}.`;
    if (major < 3 || (major === 3 && minor < 4)) {
      return danger(seen, "The store needs etcd 3.4.", "Update etcd to a supported version.");
    }
    if (major === 3 && minor === 5 && patch < 3) {
      const why = "etcd 3.5.0 to 3.5.2 may lose data of one member in a crash under load.";
      return warning(seen, why, UPGRADE);
    }
    if (!mayEndLiveLeases(version)) return ok(seen);
    const why = "It may end live leases after its leader changed: two processes may hold a lock.";
    return warning(seen, why, UPGRADE);
  }),

  check("etcd/members", ["members"], ({ members }) => {
    const { length } = members.filter(({ isLearner }) => !isLearner);
    const endures = Math.ceil(length / 2) - 1;
    const seen = `Members with a vote: ${length}; members that may fail: ${endures}.`;
    if (length === 1) {
      const why = "While it is away no lock works; without its disk all locks and tokens are lost.";
      return warning(seen, why, "Run three members.");
    }
    if (length % 2 === 1) return ok(seen);
    const why = "An even number of members endures no more than the odd number below it.";
    return note(seen, why, `Run ${length + 1} members.`);
  }),

  check("etcd/reachable", ["members", "away"], ({ members, away }) => {
    if (away.length === 0) return ok(`Every member answers (${members.length}).`);
    return warning(
      `Members do not answer where they say that clients reach them: ${away.join(", ")}.`,
      "Fewer members may fail until no majority is left, and clients find fewer servers.",
      "Start the members, and check their --advertise-client-urls.",
    );
  }),

  check("etcd/leader", ["status"], ({ status: { leader } }) => {
    if (leader !== "0") return ok("The cluster has a leader.");
    const why = "Without a leader no lock can be taken or renewed.";
    return danger("The member knows no leader.", why, "Bring back a majority of the members.");
  }),

  check("etcd/alarms", ["alarms"], ({ alarms }) => {
    if (alarms.length === 0) return ok("No alarm is raised.");
    const seen = `Alarms are raised: ${alarms.join(", ")}.`;
    if (alarms.includes("corrupt")) {
      const why = "Members disagree about the data: two may hold a lock.";
      return danger(seen, why, "Restore the member whose data is wrong from the others.");
    }
    const remedy =
      "Compact and defragment, raise --quota-backend-bytes, then etcdctl alarm disarm.";
    return danger(seen, "New locks are refused until the alarm is disarmed.", remedy);
  }),

  check("etcd/quota", ["metrics"], ({ metrics }) => {
    const used = Math.max(
      ...metrics.map((one) => one.get("etcd_mvcc_db_total_size_in_bytes") ?? 0),
    );
    const quota = Math.min(...metrics.map(quotaOf));
    const part = Math.round((used / quota) * 100);
    const seen = `The database uses ${part} % of its quota (${Math.round(quota / MEGABYTE)} MB).`;
    if (used < quota * NEAR_QUOTA) return ok(seen);
    const remedy = "Compact and defragment (auto-compaction), or raise --quota-backend-bytes.";
    return warning(seen, "Beyond the quota etcd refuses every new lock.", remedy);
  }),

  check("etcd/fsync", ["metrics"], ({ metrics }) => {
    const slowest = metrics.map((one) =>
      quantile(one, "etcd_disk_wal_fsync_duration_seconds", 0.99),
    );
    const p99 = Math.max(...slowest.filter((seconds) => !Number.isNaN(seconds)));
    if (!Number.isFinite(p99) && p99 < 0) return null;
    const seen = `99 of 100 writes to the log take up to ${Math.round(p99 * 1000)} ms.`;
    const why =
      "A leader whose disk is slow misses heartbeats: elections follow, which cost leases.";
    const remedy = "Give etcd a disk of its own, an SSD.";
    if (p99 >= SLOW_FSYNC_SECONDS) return warning(seen, why, remedy);
    return p99 > NOTED_FSYNC_SECONDS ? note(seen, why, remedy) : ok(seen);
  }),

  check("etcd/elections", ["metrics", "nowSeconds"], ({ metrics, nowSeconds }) => {
    const rates = metrics.map((one) => electionsPerHour(one, nowSeconds));
    const most = Math.max(...rates);
    const seen = `The leader changed about ${Math.round(most)} times an hour.`;
    if (most < MANY_ELECTIONS) return ok(seen);
    return warning(
      seen,
      "Every election stops the locks for a second or two; a short ttl does not outlast it.",
      "Look for slow disks, a busy processor or a bad network; raise --election-timeout.",
    );
  }),

  check("etcd/ttl", [], (_, ttlMs) => {
    if (ttlMs >= LEAST_TTL_MS) return ok("The ttl outlasts an election.");
    return warning(
      `The ttl is ${ttlMs} ms.`,
      "With default time-outs an election takes up to 2 s, and a lease needs a renewal after it.",
      "Choose a ttlMs of 10,000 or more.",
    );
  }),

  check("etcd/rights", ["refusal"], ({ refusal }) => {
    if (refusal === null) return ok("The keys of the store can be read and written.");
    return danger(
      `The keys of the store cannot be written: ${refusal.replace(/\.$/, "")}.`,
      "No session can be opened, so no lock can be taken.",
      "Grant readwrite on the prefixes that docs/stores/etcd.md names under Access.",
    );
  }),

  check("etcd/round-trip", ["roundTrip"], ({ roundTrip }, ttlMs) =>
    judgeRoundTrip(roundTrip, ttlMs),
  ),
];

/** The quota of a member; 0 means the default of etcd, 2 GB. */
function quotaOf(metrics: Metrics): number {
  return metrics.get("etcd_server_quota_backend_bytes") || 2048 * MEGABYTE;
}

/** The first elections are those of the start, and a member that runs for minutes tells little. */
function electionsPerHour(metrics: Metrics, nowSeconds: number): number {
  const changes = (metrics.get("etcd_server_leader_changes_seen_total") ?? 0) - MANY_ELECTIONS;
  const hours = (nowSeconds - (metrics.get("process_start_time_seconds") ?? 0)) / 3_600;
  return Math.max(0, changes) / Math.max(1, hours);
}

/** Rejects where etcd does not answer. */
export async function examineEtcd(
  tools: EtcdTools,
  { ttlMs, signal }: ExamineRequest,
): Promise<Examination> {
  const { calls, layout, port } = tools;
  // From the data of one member: a cluster without a leader is a finding.
  const question = { key: layout.session("0"), serializable: true };
  await calls.range(question, REACH_MS).catch((error: unknown) => {
    if (!/permission denied|user name is empty/.test(String(error))) throw error;
  });
  const facts = await readFacts(etcdProbes(tools), { port, signal });
  return {
    store: "etcd",
    findings: findingsOf(etcdChecks, facts, ttlMs),
    survivals: etcdSurvivals(facts, ttlMs),
  };
}
