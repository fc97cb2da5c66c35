import {
  type Check,
  checksOver,
  danger,
  type Examination,
  type ExamineRequest,
  note,
  ok,
  type Verdict,
  warning,
} from "../../contract/examination.js";
import {
  endOf,
  findingsOf,
  judgeRoundTrip,
  readFacts,
  worstFailureCases,
  worstFindings,
} from "../doctor.js";
import { serverChecks } from "../redis-client/server-checks.js";
import { numberIn, replicasIn } from "../redis-client/server-facts.js";
import {
  type MasterFacts,
  masterProbes,
  type RedisFacts,
  type RedisTools,
  type ReplicaTerms,
  redisProbes,
  type WaitAnswer,
} from "./redis-facts.js";
import { redisFailureCases } from "./survivals.js";

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
