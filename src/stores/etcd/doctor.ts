/** Examines a cluster: facts, checks, and what the locks survive. Loaded on demand. */
import { get } from "node:http";
import { connect } from "node:net";
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
  warning,
} from "../../contract/examination.js";
import type { Runtime } from "../../time/runtime.js";
import {
  CLIENT_FAILURES,
  findingsOf,
  judgeRoundTrip,
  known,
  measureRoundTrip,
  type Probes,
  type RoundTrip,
  readFacts,
  seconds,
  twoHolders,
} from "../doctor.js";
import type { EtcdCalls } from "./calls.js";
import { mayEndLiveLeases, partsOf, UPGRADE } from "./client.js";
import { type Layout, wasMadeAt } from "./layout.js";
import type { Member, StatusReply } from "./wire/messages.js";

/** The state of a cluster. */
export interface EtcdFacts {
  readonly status: StatusReply;
  /** The alarms that are raised, in lower case. */
  readonly alarms: readonly string[];
  readonly members: readonly Member[];
  /** The names of members that do not answer where they say that clients reach them. */
  readonly away: readonly string[];
  /** Of each member that publishes them. */
  readonly metrics: readonly Metrics[];
  /** The wall clock of this process, which metrics are compared with. */
  readonly nowSeconds: number;
  /** Why the keys of the store cannot be read and written; null if they can. */
  readonly refusal: string | null;
  readonly roundTrip: RoundTrip;
}

/** The parts of the store that the probes use. */
interface EtcdTools {
  readonly calls: EtcdCalls;
  readonly layout: Layout;
  readonly runtime: Runtime;
}

const REACH_MS = 3_000;
/** With the default timeouts of etcd an election takes up to two seconds. */
const MIN_TTL_MS = 5_000;
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
    if (leader !== 0n) return ok("The cluster has a leader.");
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
    if (ttlMs >= MIN_TTL_MS) return ok("The ttl outlasts an election.");
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

/** Ignores the elections of the start, and counts at least one hour: minutes prove little. */
function electionsPerHour(metrics: Metrics, nowSeconds: number): number {
  const changes = (metrics.get("etcd_server_leader_changes_seen_total") ?? 0) - MANY_ELECTIONS;
  const hours = (nowSeconds - (metrics.get("process_start_time_seconds") ?? 0)) / 3_600;
  return Math.max(0, changes) / Math.max(1, hours);
}

/** What the locks of a cluster with these facts survive. */
function etcdFailureCases(facts: Facts<EtcdFacts>, ttlMs: number): FailureCase[] {
  const two = twoHolders(ttlMs);
  const voters = known(facts.members)?.filter(({ isLearner }) => !isLearner).length;
  return [
    ...CLIENT_FAILURES,
    memberFails(voters),
    {
      event: "The leader is cut off",
      outcome: "An answer that no majority confirmed counts for nothing.",
      isSafe: true,
    },
    {
      event: "All members restart with their data",
      outcome: `Locks go on if a leader is there within ${seconds(ttlMs)}, else they end in time.`,
      isSafe: true,
    },
    {
      event: "The data is lost, or restored from a backup",
      outcome: `Locks are lost: ${two}. Tokens may repeat.`,
      isSafe: false,
    },
  ];
}

function memberFails(voters: number | undefined): FailureCase {
  const event = "A member fails";
  if (voters === undefined) {
    const outcome = "Locks go on if the others are a majority; their number is not known.";
    return { event, outcome, isSafe: true };
  }
  const endured = Math.ceil(voters / 2) - 1;
  const outcome =
    endured > 0
      ? `Locks go on: ${endured} of ${voters} may fail.`
      : "Locks stop until it is back, and leases end at their deadlines.";
  return { event, outcome, isSafe: true };
}

/** Rejects if etcd does not answer. */
export async function examineEtcd(
  tools: EtcdTools,
  { ttlMs, signal }: ExamineRequest,
): Promise<Examination> {
  const { calls, layout, runtime } = tools;
  // From the data of one member: a cluster without a leader is a finding.
  const question = { key: layout.session("0"), serializable: true };
  await calls.range(question, REACH_MS).catch((error: unknown) => {
    if (!/permission denied|user name is empty/.test(String(error))) throw error;
  });
  const facts = await readFacts(etcdProbes(tools), { runtime, signal });
  return {
    store: "etcd",
    findings: findingsOf(etcdChecks, facts, ttlMs),
    failureCases: etcdFailureCases(facts, ttlMs),
  };
}

const CALL_MS = 1_500;
const CONNECT_MS = 1_000;
/** No key was ever made at this revision, so the write with this condition is never done. */
const NEVER = 9223372036854775806n;

function etcdProbes({ calls, layout, runtime }: EtcdTools): Probes<EtcdFacts> {
  const key = layout.session("0");
  let members: Promise<readonly Member[]> | undefined;
  const listMembers = (): Promise<readonly Member[]> => {
    members ??= calls.members(CALL_MS);
    return members;
  };
  return {
    status: () => calls.status(CALL_MS),
    alarms: async () => (await calls.alarms(CALL_MS)).map((alarm) => alarm.toLowerCase()),
    members: listMembers,
    away: async () => {
      const tried = (await listMembers()).map(async (member) => {
        return (await isReached(member)) ? [] : [member.name || "a member that has not started"];
      });
      return (await Promise.all(tried)).flat();
    },
    metrics: async () => {
      const asked = (await listMembers()).map(({ clientURLs }) => metricsOf(clientURLs));
      const answers = await Promise.allSettled(asked);
      const found = answers.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      const [failed] = answers.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      if (found.length > 0) return found;
      throw new Error(`No member tells its metrics: ${(failed as Error | undefined)?.message}.`);
    },
    nowSeconds: () => runtime.clock.wallUs() / 1_000_000,
    refusal: async () => {
      try {
        // etcd checks the rights of both branches before it compares.
        const compare = [wasMadeAt(key, NEVER)];
        const success = [{ requestPut: { key } }];
        const failure = [{ requestRange: { key, keysOnly: true } }];
        await calls.txn({ compare, success, failure }, CALL_MS);
        return null;
      } catch (error) {
        if (/permission denied|user name is empty/.test(String(error))) return String(error);
        throw error;
      }
    },
    roundTrip: () => measureRoundTrip(runtime.clock, () => calls.range({ key }, CALL_MS)),
  };
}

async function metricsOf(urls: readonly string[]): Promise<Metrics> {
  const url = urls.find((one) => one.startsWith("http:"));
  if (url === undefined) throw new Error("it has no URL without TLS");
  return await fetchMetrics(url);
}

/** Whether a connection to one of the URLs of the member can be made. */
async function isReached({ clientURLs }: Member): Promise<boolean> {
  const tried = clientURLs.filter((url) => URL.canParse(url)).map((url) => isOpen(new URL(url)));
  return (await Promise.all(tried)).includes(true);
}

function isOpen({ hostname, port, protocol }: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const host = hostname.replace(/^\[|\]$/g, "");
    const number = Number(port || (protocol === "https:" ? 443 : 80));
    const socket = connect({ host, port: number, timeout: CONNECT_MS });
    const end = (isReached: boolean): void => {
      socket.destroy();
      resolve(isReached);
    };
    socket.once("connect", () => end(true));
    socket.once("timeout", () => end(false));
    socket.once("error", () => end(false));
  });
}

/** The metrics of one member: the value of each metric with its labels. */
export type Metrics = ReadonlyMap<string, number>;

const METRICS_MS = 1_000;
const MAX_METRICS_BYTES = 8 * 1024 * 1024;

/** Asks a member for its metrics, at a URL that it gives to clients. */
function fetchMetrics(url: string): Promise<Metrics> {
  return new Promise((resolve, reject) => {
    const request = get(
      new URL("/metrics", url),
      { agent: false, timeout: METRICS_MS },
      (reply) => {
        let text = "";
        reply.setEncoding("utf8");
        reply.on("data", (part: string) => {
          text += part;
          if (text.length > MAX_METRICS_BYTES)
            request.destroy(new Error("the metrics are too long"));
        });
        reply.on("error", reject);
        reply.on("end", () => {
          if (reply.statusCode === 200) resolve(readMetrics(text));
          else reject(new Error(`the metrics have the HTTP status ${reply.statusCode}`));
        });
      },
    );
    request.on("timeout", () => request.destroy(new Error(`no answer within ${METRICS_MS} ms`)));
    request.on("error", reject);
  });
}

/** Reads the text format of Prometheus. */
export function readMetrics(text: string): Metrics {
  const metrics = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [, name, value] = /^([a-z_]\w*(?:\{[^}]*\})?) (\S+)$/i.exec(line) ?? [];
    if (name !== undefined) metrics.set(name, Number(value));
  }
  return metrics;
}

/** The smallest bound of a histogram that covers this part of its values; NaN if it is empty. */
export function quantile(metrics: Metrics, histogram: string, part: number): number {
  const total = metrics.get(`${histogram}_count`) ?? 0;
  if (total === 0) return Number.NaN;
  for (const [name, count] of metrics) {
    const [, bound] = name.startsWith(`${histogram}_bucket`)
      ? (/le="([^"]+)"/.exec(name) ?? [])
      : [];
    if (bound !== undefined && count >= total * part) {
      return bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound);
    }
  }
  return Number.POSITIVE_INFINITY;
}
