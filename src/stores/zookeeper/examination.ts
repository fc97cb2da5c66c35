import { type Check, checksOver, danger, note, ok, warning } from "../../contract/checks.js";
import type { Examination, ExamineRequest } from "../../contract/examination.js";
import { findingsOf, known, readFacts } from "../doctor/read-facts.js";
import { judgeRoundTrip } from "../doctor/round-trip.js";
import { zookeeperError } from "./failure.js";
import { zookeeperSurvivals } from "./survivals.js";
import {
  type NamedServer,
  type ZookeeperFacts,
  type ZookeeperTools,
  zookeeperProbes,
} from "./zookeeper-facts.js";

const SERVING: readonly unknown[] = ["leader", "follower", "observer", "standalone"];

const check = checksOver<ZookeeperFacts>();

export const zookeeperChecks: readonly Check<ZookeeperFacts>[] = [
  check("zookeeper/version", ["servers"], ({ servers }) => {
    const versions = new Set(servers.flatMap(({ status }) => status?.version ?? []));
    if (versions.size === 0) return null;
    const seen = `The servers are ZooKeeper ${[...versions].join(" and ")}.`;
    const isOld = [...versions].some((version) => /^([0-2]\.|3\.[0-4]\b)/.test(version));
    if (!isOld) return ok(seen);
    const why = "The store needs containers and transactions of ZooKeeper 3.5.";
    return danger(seen, why, "Update all servers to 3.5 or later.");
  }),

  check("zookeeper/servers", ["servers"], ({ servers }) => {
    const away = servers.filter(({ status }) => status === null).map(({ server }) => server);
    if (away.length === 0) return ok(`Every server that is named answers (${servers.length}).`);
    return warning(
      `Servers do not answer: ${away.join(", ")}.`,
      "Fewer servers may fail until no quorum is left, and clients find fewer servers.",
      "Start the servers, or name the right ones. `srvr` must be in 4lw.commands.whitelist.",
    );
  }),

  check("zookeeper/quorum", ["servers"], ({ servers }) => {
    const answering = servers.filter(({ status }) => status !== null);
    const idle = answering.filter(({ status }) => !SERVING.includes(status?.mode));
    if (answering.length === 0) return null;
    if (idle.length === 0) return ok("All servers that answer serve requests.");
    const names = idle.map(({ server, status }) => {
      return `${server} (${status?.mode === "read_only" ? "read-only" : "no requests"})`;
    });
    const seen = `Servers have no quorum: ${names.join(", ")}.`;
    const remedy = "Bring back a majority of the servers, and look at the network between them.";
    if (idle.length < answering.length) {
      return warning(seen, "Clients of these servers have to move to others.", remedy);
    }
    return danger(seen, "Without a quorum no lock can be taken or renewed.", remedy);
  }),

  check("zookeeper/ensemble", ["servers", "voters"], ({ servers, voters }) => {
    const count = isStandalone(servers) ? 1 : voters;
    const endures = Math.ceil(count / 2) - 1;
    const seen = `Servers with a vote: ${count}; servers that may fail: ${endures}.`;
    if (count <= 1) {
      const why = "While it is away no lock works; without its disk all locks and tokens are lost.";
      return warning(seen, why, "Run an ensemble of three servers.");
    }
    if (count % 2 === 0) {
      const why = "An even number of servers endures no more than the odd number below it.";
      return note(seen, why, `Run ${count + 1} servers.`);
    }
    if (servers.length >= count) return ok(seen);
    const why = "A client that knows fewer servers has fewer to go to when one fails.";
    const named = `Servers that are named: ${servers.length} of ${count}.`;
    return note(named, why, "Name all servers of the ensemble.");
  }),

  check("zookeeper/session-bounds", ["grantedMs"], ({ grantedMs }, ttlMs) => {
    const askedMs = Math.ceil(ttlMs);
    if (grantedMs === askedMs) return ok(`The servers keep a session for ${askedMs} ms.`);
    const [bound, setting] =
      grantedMs < askedMs ? ["at most", "maxSessionTimeout"] : ["at least", "minSessionTimeout"];
    return danger(
      `The servers keep a session for ${bound} ${grantedMs} ms, and the ttl is ${askedMs} ms.`,
      "A ttl outside of their bounds is refused: no lock can be taken with it.",
      `Choose a ttlMs within the bounds, or change ${setting} on all servers.`,
    );
  }),

  check("zookeeper/rights", ["refusal"], ({ refusal }) => {
    if (refusal === null) return ok("Znodes can be made where the locks are.");
    return danger(
      `No znode can be made where the locks are: ${refusal}.`,
      "Without the permission to create no lock can be taken.",
      "Give the user all permissions on the path of the locks: see docs/stores/zookeeper.md.",
    );
  }),

  check("zookeeper/direct", ["servers", "isDirect"], ({ servers, isDirect }) => {
    if (!isDirect) return null;
    const mute = servers.filter(({ status }) => status !== null && status.version === null);
    if (mute.length === 0) return ok("The servers say whether they lead (direct).");
    return warning(
      `Servers do not answer srvr: ${mute.map(({ server }) => server).join(", ")}.`,
      "The option direct has no effect there: every renewal makes a new connection.",
      "Add srvr to 4lw.commands.whitelist of the servers.",
    );
  }),

  check("zookeeper/round-trip", ["roundTrip"], ({ roundTrip }, ttlMs) =>
    judgeRoundTrip(roundTrip, ttlMs),
  ),
];

function isStandalone(servers: readonly NamedServer[]): boolean {
  return servers.some(({ status }) => status?.mode === "standalone");
}

/** Rejects where no server answers. */
export async function examineZookeeper(
  tools: ZookeeperTools,
  { ttlMs, signal }: ExamineRequest,
): Promise<Examination> {
  const { port } = tools.ensemble;
  const facts = await readFacts(zookeeperProbes(tools, ttlMs), { port, signal });
  const isSilent = known(facts.servers)?.every(({ status }) => status === null) ?? true;
  if (isSilent && "unknownBecause" in facts.grantedMs) {
    throw zookeeperError(new Error(facts.grantedMs.unknownBecause), tools.servers);
  }
  return {
    store: "zookeeper",
    findings: findingsOf(zookeeperChecks, facts, ttlMs),
    survivals: zookeeperSurvivals(facts, ttlMs),
  };
}
