/** What `holdfast doctor` asks of Redis, and what it concludes. Only a doctor loads this. */
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
import { pause } from "../../time/pause.js";
import type { Runtime } from "../../time/runtime.js";
import { TimeLimitError } from "../../time/timers.js";
import {
  CLIENT_FAILURES,
  endOf,
  findingsOf,
  judgeRoundTrip,
  known,
  measureRoundTrip,
  type Probes,
  type RoundTrip,
  readFacts,
  twoHolders,
  worstFailureCases,
  worstFindings,
} from "../doctor.js";
import type { Driver, Master, SentinelState } from "../redis-client/client.js";
import {
  type Fields,
  infoFields,
  numberIn,
  type Persistence,
  replicasIn,
  type ServerFacts,
  serverChecks,
  serverProbes,
} from "../redis-client/doctor.js";
import { saidBy } from "../redis-client/errors.js";
import type { Layout } from "./layout.js";
import { ReplicaConnection } from "./replica-connection.js";
/** The state of a deployment that concerns the store, beside that of its servers. */
export interface RedisFacts {
  /** Why the script of the store does not run; null where it does. */
  readonly script: string | null;
  /** Why messages do not arrive; null where they do. */
  readonly messages: string | null;
  /** The answer of WAIT; null where the store does not use it. */
  readonly wait: WaitAnswer | null;
  /** The commands that the user may not call. */
  readonly refusedCommands: readonly string[];
  /** The opinion of a sentinel on each master that it knows; null where there is none. */
  readonly sentinel: SentinelState | null;
  readonly roundTrip: RoundTrip;
}

/** The number of replicas that have the last write, or why that cannot be told. */
export type WaitAnswer = {
  readonly replicas: number;
  readonly limitMs: number;
} & ({ readonly count: number } | { readonly refusal: string });

/** The state of one of the servers, and how the store uses it. */
export interface MasterFacts extends ServerFacts {
  readonly use: RedisTerms;
  /** The Cluster as this server sees it; null where the client is for one server. */
  readonly cluster: Fields | null;
}

/** How the store is used. */
export interface RedisTerms {
  /** The option `replicas`. */
  readonly replicas: number;
  /** A failover may come without a person: by Sentinel, or in a Cluster. */
  readonly failsOver: boolean;
}

/** The options of the store about replicas. */
export interface ReplicaTerms {
  readonly replicas: number;
  readonly replicaTimeoutMs: number;
}

/** The tools of the arbiter that the probes use. */
export interface RedisTools {
  readonly driver: Driver;
  readonly layout: Layout;
  readonly runtime: Runtime;
  /** Runs the script without commands. */
  greet(): Promise<unknown>;
}

/** How long a message to oneself may take. */
const MESSAGE_MS = 1_000;
/** How long replicas may take at most, within the time for one fact. */
const MAX_WAIT_MS = 500;

/**
 * Calls each command that the scripts need in a way that changes nothing: a read, a write of no
 * effect on a key that is never used, or a write with an argument that Redis refuses after it has
 * checked the rights. HSETNX is left out: it has no such way. The keys are those of the script.
 */
export const RIGHTS_PROBE = `
local key = KEYS[1]
local calls = {
  {'time'}, {'info', 'server'}, {'type', key}, {'get', key}, {'exists', key}, {'hget', key, 'f'},
  {'hmget', key, 'f'}, {'hscan', key, '0'}, {'hrandfield', key},
  {'zrange', key, '0', '0'}, {'publish', ARGV[1], ''},
  {'set', key, 'v', 'none'}, {'pexpireat', key, 'none'}, {'hset', key, 'f', 'v', 'g'},
  {'zadd', key, 'none', 'm'}, {'hdel', key, 'f'}, {'zrem', key, 'm'}, {'unlink', key},
}
local refused = {}
for _, call in ipairs(calls) do
  local answer = redis.pcall(unpack(call))
  local text = type(answer) == 'table' and answer.err or ''
  for _, sign in ipairs({'ACL failure', 'NOPERM', "can't run this", "can't access"}) do
    if string.find(text, sign, 1, true) then refused[#refused + 1] = call[1] break end
  end
end
return refused`;

export function masterProbes(
  master: Master,
  { driver, runtime }: RedisTools,
  use: RedisTerms,
): Probes<MasterFacts> {
  return {
    ...serverProbes(master, runtime),
    use: () => use,
    cluster: async () => {
      if (!driver.isCluster) return null;
      return infoFields(String(await master.send(["cluster", "info"])));
    },
  };
}

export function redisProbes(
  { driver, layout, runtime, greet }: RedisTools,
  { replicas, replicaTimeoutMs }: ReplicaTerms,
): Probes<RedisFacts> {
  const register = layout.registerOf(layout.shards[0] ?? "");
  const channel = layout.channelPrefix + runtime.random.id();
  return {
    script: () => reasonOf(greet()),
    messages: () => reasonOf(hearOneself(driver, runtime, channel)),
    wait: async () => {
      if (replicas === 0) return null;
      const limitMs = Math.min(replicaTimeoutMs, MAX_WAIT_MS);
      const connection = await driver.open(register);
      const key = driver.keyPrefix + register;
      const link = new ReplicaConnection(connection, runtime.timers, key, limitMs);
      try {
        await link.prepare();
        return { replicas, limitMs, count: await link.count(replicas) };
      } catch (error) {
        if (error instanceof TimeLimitError) throw error;
        return { replicas, limitMs, refusal: saidBy(error) };
      } finally {
        connection.close();
      }
    },
    refusedCommands: async () => {
      const key = `${register}?`;
      const refused = await driver.send(key, "eval", [RIGHTS_PROBE, "1", key, channel]);
      return (refused as readonly unknown[]).map(String);
    },
    sentinel: () => driver.sentinel?.() ?? null,
    roundTrip: () => measureRoundTrip(runtime.clock, () => driver.send(register, "time", [])),
  };
}

/** Null where the promise is kept, else the reason why not. */
async function reasonOf(promise: Promise<unknown>): Promise<string | null> {
  try {
    await promise;
    return null;
  } catch (error) {
    return saidBy(error);
  }
}

async function hearOneself(driver: Driver, runtime: Runtime, channel: string): Promise<void> {
  const connection = await driver.open(null);
  try {
    let onHeard = (_isHeard: boolean): void => {};
    const heard = new Promise<boolean>((resolve) => {
      onHeard = resolve;
    });
    await connection.subscribe(channel, () => onHeard(true));
    await driver.send("", "publish", [channel, ""]);
    void pause(runtime.timers, MESSAGE_MS, true).then(() => onHeard(false));
    if (!(await heard)) throw new Error(`no message within ${MESSAGE_MS} ms`);
  } finally {
    connection.close();
  }
}

const LAGGING_SECONDS = 10;
const ACL_PAGE = "Grant the rights of the ACL line in docs/stores/redis.md.";

const check = checksOver<MasterFacts>();
const checkStore = checksOver<RedisFacts>();

/** The checks of one server for the redis store, beside those that all stores share. */
export const redisServerChecks: readonly Check<MasterFacts>[] = [
  check("redis/persistence", ["persistence"], ({ persistence }) => {
    const { hasAppendOnlyFile, fsync, hasSnapshots } = persistence;
    const why = "A lock that the server forgets in a restart is granted again while it is held.";
    const remedy = "Set appendonly yes and appendfsync everysec or always.";
    if (hasAppendOnlyFile) {
      if (fsync !== "no") return ok(`The append-only file is on (appendfsync ${fsync ?? "?"}).`);
      return warning("The append-only file is on, with appendfsync no.", why, remedy);
    }
    if (hasSnapshots === false) return warning("Nothing is written to disk.", why, remedy);
    return warning("There is no append-only file; at most snapshots are made.", why, remedy);
  }),

  check("redis/replicas", ["info", "use"], ({ info, use }) => {
    const online = replicasIn(info).filter(({ isOnline }) => isOnline).length;
    const seen = `Replicas that are online: ${online}; the option replicas is ${use.replicas}.`;
    const advice = "Set replicas to the number of all replicas.";
    if (online < use.replicas) {
      const why = "A grant counts only when so many replicas have it: every acquire fails.";
      return danger(seen, why, "Start the missing replicas, or lower replicas.");
    }
    if (use.replicas > 0 && online > use.replicas) {
      const why = "A failover to a replica without the last grants forgets them.";
      return warning(seen, why, advice);
    }
    if (use.replicas > 0 || online === 0) return ok(seen);
    const why = "A failover forgets the grants that the new master had not received.";
    return use.failsOver ? warning(seen, why, advice) : note(seen, why, advice);
  }),

  check("redis/min-replicas", ["info", "config", "use"], ({ info, config, use }) => {
    const least = numberIn(config, "min-replicas-to-write");
    const good = numberIn(info, "min_slaves_good_slaves");
    const seen = `min-replicas-to-write is ${least}`;
    if (least > 0 && good < least) {
      const why = "Redis refuses writes: no lock can be taken.";
      const remedy = "Start the missing replicas, or lower min-replicas-to-write.";
      return danger(`${seen}; replicas that follow: ${good}.`, why, remedy);
    }
    const needsIt = use.failsOver && use.replicas === 0 && replicasIn(info).length > 0;
    if (least > 0 || !needsIt) return ok(`${seen}.`);
    const why = "A master that is cut off goes on granting locks beside the new master.";
    return note(`${seen}.`, why, "Set min-replicas-to-write 1.");
  }),

  check("redis/lag", ["info"], ({ info }) => {
    const replicas = replicasIn(info);
    if (replicas.length === 0) return null;
    const late = replicas.filter((one) => !one.isOnline || one.lagSeconds >= LAGGING_SECONDS);
    if (late.length === 0) return ok("All replicas follow the master.");
    const names = late.map(({ address, lagSeconds }) => `${address} (${lagSeconds} s)`);
    return warning(
      `Replicas are behind or not in sync: ${names.join(", ")}.`,
      "A failover to such a replica forgets all that it has not received.",
      "Look at the replica: is it stopped, overloaded or cut off?",
    );
  }),

  check("redis/cluster-client", ["info", "use"], ({ info, use }) => {
    if (info.get("cluster_enabled") !== "1") return null;
    if (use.failsOver) return ok("The client follows the Cluster.");
    return danger(
      "The server is part of a Cluster, and the client is for one server.",
      "Locks whose slots are at other servers cannot be taken.",
      "Use a Cluster client, or a URL that begins with redis+cluster:.",
    );
  }),

  check("redis/cluster", ["cluster"], ({ cluster }) => cluster && judgeCluster(cluster)),
];

/** The checks of the store as a whole. */
export const redisChecks: readonly Check<RedisFacts>[] = [
  checkStore("redis/script", ["script"], ({ script }) => {
    if (script === null) return ok("The script of the store runs.");
    const why = "Without its script the store can do nothing; some proxies refuse EVAL.";
    return danger(`The script of the store does not run: ${script}.`, why, ACL_PAGE);
  }),

  checkStore("redis/rights", ["refusedCommands"], ({ refusedCommands }) => {
    if (refusedCommands.length === 0) return ok("The user may call all that the script needs.");
    const why = "A script that is refused a command fails in the middle of its work.";
    return danger(`The user may not call ${refusedCommands.join(", ")}.`, why, ACL_PAGE);
  }),

  checkStore("redis/messages", ["messages"], ({ messages }) => {
    if (messages === null) return ok("A message to this process arrived.");
    return warning(
      `A message to this process did not arrive: ${messages}.`,
      "Waiters are not told when a lock is handed to them, and ask only from time to time.",
      `Connect without a proxy that drops PUBLISH and SUBSCRIBE. ${ACL_PAGE}`,
    );
  }),

  checkStore("redis/wait", ["wait"], ({ wait }) => wait && judgeWait(wait)),

  checkStore("redis/sentinel", ["sentinel"], ({ sentinel }) => {
    if (!sentinel) return null;
    const { sentinels, quorum, verdict } = sentinel;
    const seen = `Sentinels that know each other: ${sentinels}; quorum: ${quorum}`;
    const remedy = "Run three sentinels on three machines, with a quorum of 2.";
    const why = "Without enough sentinels no replica takes over when the master fails.";
    if (!verdict.startsWith("OK")) return warning(`${seen} (${verdict}).`, why, remedy);
    if (sentinels < 3) return warning(`${seen}.`, why, remedy);
    return ok(`${seen}.`);
  }),

  checkStore("redis/round-trip", ["roundTrip"], ({ roundTrip }, ttlMs) =>
    judgeRoundTrip(roundTrip, ttlMs),
  ),
];

function judgeCluster(cluster: ReadonlyMap<string, string>): Verdict {
  const assigned = numberIn(cluster, "cluster_slots_assigned");
  const failing =
    numberIn(cluster, "cluster_slots_fail") + numberIn(cluster, "cluster_slots_pfail");
  const seen = `The Cluster says ${cluster.get("cluster_state")}: ${assigned} slots are assigned`;
  if (cluster.get("cluster_state") === "ok" && assigned === 16_384 && failing === 0) {
    return ok(`${seen}, none fails.`);
  }
  return danger(
    `${seen}, ${failing} fail.`,
    "Locks of slots that no server serves cannot be taken or renewed.",
    "Bring the missing masters back, or assign their slots (redis-cli --cluster fix).",
  );
}

function judgeWait(wait: WaitAnswer): Verdict {
  const { replicas, limitMs } = wait;
  const why = "With replicas, a grant counts only when WAIT says so: every acquire fails.";
  if ("refusal" in wait) {
    return danger(
      `WAIT cannot be trusted: ${wait.refusal.replace(/\.$/, "")}.`,
      why,
      `Connect without a proxy that answers WAIT itself, or set replicas to 0. ${ACL_PAGE}`,
    );
  }
  const seen = `After ${limitMs} ms WAIT counts ${wait.count} of ${replicas} replicas.`;
  if (wait.count < replicas) {
    return danger(seen, why, "Start the missing replicas, or look at what makes them slow.");
  }
  return ok("WAIT waits: the replicas have the last write.");
}

/** The failure cases of a server with these facts. */
export function redisFailureCases(facts: Facts<MasterFacts>, ttlMs: number): FailureCase[] {
  const two = twoHolders(ttlMs);
  return [
    ...CLIENT_FAILURES,
    restart(known(facts.persistence), two),
    crash(known(facts.persistence), two),
    failover(facts, two),
    fullMemory(facts, two),
    {
      event: "The clock of the server jumps ahead",
      outcome: `Leases end early: ${two}.`,
      isSafe: false,
    },
  ];
}

function restart(persistence: Persistence | undefined, two: string): FailureCase {
  const event = "The server restarts";
  if (persistence === undefined) return unknown(event);
  if (persistence.hasAppendOnlyFile) {
    return { event, outcome: "Locks are kept by the append-only file.", isSafe: true };
  }
  const lost = persistence.hasSnapshots === false ? "All locks" : "Locks since the last snapshot";
  return { event, outcome: `${lost} are forgotten: ${two}.`, isSafe: false };
}

function crash(persistence: Persistence | undefined, two: string): FailureCase {
  const event = "The machine of the server crashes";
  if (persistence === undefined) return unknown(event);
  const { hasAppendOnlyFile, fsync } = persistence;
  if (hasAppendOnlyFile && fsync === "always") {
    return { event, outcome: "Locks are kept: each is on the disk.", isSafe: true };
  }
  const lost =
    hasAppendOnlyFile && fsync === "everysec"
      ? "Locks of the last second"
      : "Locks that were not on the disk";
  return { event, outcome: `${lost} are forgotten: ${two}.`, isSafe: false };
}

function failover({ info, use }: Facts<MasterFacts>, two: string): FailureCase {
  const event = "A replica takes over";
  const [fields, terms] = [known(info), known(use)];
  if (!fields || !terms) return unknown(event);
  const count = replicasIn(fields).length;
  const { replicas } = terms;
  if (count === 0) {
    const outcome = "There is no replica: while the server is away, leases end at their deadlines.";
    return { event, outcome, isSafe: true };
  }
  if (replicas >= count) {
    return { event, outcome: "Locks are kept: every replica has each of them.", isSafe: true };
  }
  const which = replicas > 0 ? `, unless it is one of the ${replicas} that had them` : "";
  const outcome = `Grants that it had not received are forgotten: ${two}${which}.`;
  return { event, outcome, isSafe: false };
}

function fullMemory({ info }: Facts<MasterFacts>, two: string): FailureCase {
  const event = "The memory of the server is full";
  const fields = known(info);
  if (!fields) return unknown(event);
  if (fields.get("maxmemory_policy") === "noeviction") {
    const outcome = "New locks are refused; held ones are renewed and released.";
    return { event, outcome, isSafe: true };
  }
  return { event, outcome: `Locks may be evicted: ${two}.`, isSafe: false };
}

function unknown(event: string): FailureCase {
  return { event, outcome: "Not known: the settings could not be read.", isSafe: false };
}

/** Rejects where no server answers. */
export async function examineRedis(
  tools: RedisTools,
  terms: ReplicaTerms,
  { ttlMs, signal }: ExamineRequest,
): Promise<Examination> {
  const { driver, runtime } = tools;
  // The facts of the servers and of the store have to share the time.
  const reading = { runtime, signal, endMs: endOf(runtime) };
  const masters = await driver.masters();
  const use = { replicas: terms.replicas, failsOver: driver.isCluster || driver.address === null };
  const servers = await Promise.all(
    masters.map(async (master) => {
      const probes = masterProbes(master, tools, use);
      return { server: master.address, facts: await readFacts(probes, reading) };
    }),
  );
  const facts = await readFacts(redisProbes(tools, terms), reading);
  const findings = servers.map(({ server, facts: found }) => ({
    server,
    findings: findingsOf([...serverChecks, ...redisServerChecks], found, ttlMs),
  }));
  return {
    store: "redis",
    findings: [...worstFindings(findings), ...findingsOf(redisChecks, facts, ttlMs)],
    failureCases: worstFailureCases(servers.map((one) => redisFailureCases(one.facts, ttlMs))),
  };
}
