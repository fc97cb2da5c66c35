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
} from "../doctor.js";
import { askStatus, type Ensemble, type ServerStatus } from "./client.js";
import { zookeeperError } from "./errors.js";
import type { Layout } from "./layout.js";
import type { WatchingSession } from "./watches.js";
import type { Connection } from "./wire/connection.js";
import {
  type Acl,
  check as checkZnode,
  create2,
  exists,
  getData,
  multi,
  sync,
} from "./wire/requests.js";
import { MAX_TIMEOUT_MS } from "./wire/session.js";

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
  const { runtime } = tools.ensemble;
  const facts = await readFacts(zookeeperProbes(tools, ttlMs), { runtime, signal });
  const isSilent = known(facts.servers)?.every(({ status }) => status === null) ?? true;
  if (isSilent && "unknownBecause" in facts.grantedMs) {
    throw zookeeperError(new Error(facts.grantedMs.unknownBecause), tools.servers);
  }
  return {
    store: "zookeeper",
    findings: findingsOf(zookeeperChecks, facts, ttlMs),
    failureCases: zookeeperFailureCases(facts, ttlMs),
  };
}

/** A server of the ensemble. */
export interface NamedServer {
  readonly server: string;
  /** Null where the server does not answer. */
  readonly status: ServerStatus | null;
}

/** The state of an ensemble. */
export interface ZookeeperFacts {
  readonly servers: readonly NamedServer[];
  /** The timeout that a session gets which asks for the ttl. */
  readonly grantedMs: number;
  /** How many servers have a vote, as the ensemble says itself; 0 for a standalone server. */
  readonly voters: number;
  /** Why no znode can be made where the locks are; null where one can. */
  readonly refusal: string | null;
  readonly roundTrip: RoundTrip;
  /** The option `direct`. */
  readonly isDirect: boolean;
}

/** The parts of the store that the probes use. */
export interface ZookeeperTools {
  readonly ensemble: Ensemble;
  readonly session: WatchingSession;
  readonly layout: Layout;
  readonly acl: readonly Acl[];
  readonly isDirect: boolean;
  readonly servers: string;
}

const CALL_MS = 1_500;
/** A queue that is not used by locks: the name of a lock has no such colon. */
const NEVER = "holdfast:never";

export function zookeeperProbes(tools: ZookeeperTools, ttlMs: number): Probes<ZookeeperFacts> {
  const { ensemble, session, layout, acl, isDirect } = tools;
  const { runtime } = ensemble;
  return {
    servers: () => readServers(ensemble),
    grantedMs: () => grantedFor(ensemble, Math.min(Math.ceil(ttlMs), MAX_TIMEOUT_MS)),
    voters: () =>
      session.use(async (connection) => {
        const { data } = await connection.send(getData("/zookeeper/config"));
        return [...data.toString().matchAll(/^server\.\d+=.*:participant\b/gm)].length;
      }, CALL_MS),
    refusal: () =>
      session.use((connection) => refusalAt(connection, layout.space("lock"), acl), CALL_MS),
    roundTrip: () =>
      measureRoundTrip(runtime.clock, () => {
        return session.use((connection) => connection.send(sync("/")), CALL_MS);
      }),
    isDirect: () => isDirect,
  };
}

function readServers({ addresses, settings, runtime }: Ensemble): Promise<NamedServer[]> {
  return Promise.all(
    addresses.map(async (address) => {
      const asked = askStatus(address, settings, { limitMs: CALL_MS, runtime });
      const status = await asked.catch(() => null);
      return { server: `${address.host}:${address.port}`, status };
    }),
  );
}

/** Opens a session as an acquire does, and ends it. */
async function grantedFor(ensemble: Ensemble, timeoutMs: number): Promise<number> {
  const request = { key: null, timeoutMs, isQuiet: true };
  const connection = await ensemble.connect(request, CALL_MS);
  try {
    return (await connection.opened).timeoutMs;
  } finally {
    connection.endSession().catch(() => {});
  }
}

/**
 * Tries to make a znode in a transaction whose second part always fails: the server checks the
 * rights of the first part, and does neither.
 */
async function refusalAt(
  connection: Connection,
  path: string,
  acl: readonly Acl[],
): Promise<string | null> {
  const parent = await nearest(connection, path);
  const parts = [create2(`${parent}/${NEVER}`, { acl }), checkZnode(`${parent}/${NEVER}/${NEVER}`)];
  const reply = await connection.send(multi(parts));
  return reply.type === "refused" && reply.at === 0 ? reply.error.message : null;
}

/** The znode itself, or the first one above it that exists; "" is the root. */
async function nearest(connection: Connection, path: string): Promise<string> {
  if (path === "") return "";
  const { stat } = await connection.send(exists(path));
  return stat ? path : await nearest(connection, path.slice(0, path.lastIndexOf("/")));
}

/** The failure cases of an ensemble with these facts. */
export function zookeeperFailureCases(facts: Facts<ZookeeperFacts>, ttlMs: number): FailureCase[] {
  return [
    ...CLIENT_FAILURES,
    serverFails(known(facts.voters)),
    {
      event: "The leader is cut off",
      outcome: "An answer that no majority confirmed counts for nothing.",
      isSafe: true,
    },
    {
      event: "All servers restart with their data",
      outcome: `Locks go on if a leader is there within ${seconds(ttlMs)}, else they end in time.`,
      isSafe: true,
    },
    {
      event: "The data is lost, or an old snapshot restored",
      outcome:
        "Locks are lost: two processes may both think they hold it for up to " +
        `${seconds(ttlMs)}. Tokens may repeat.`,
      isSafe: false,
    },
  ];
}

function serverFails(voters: number | undefined): FailureCase {
  const event = "A server fails";
  if (voters === undefined) {
    const outcome = "Locks go on if the others are a quorum; their number is not known.";
    return { event, outcome, isSafe: true };
  }
  const endured = Math.max(0, Math.ceil(voters / 2) - 1);
  const outcome =
    endured > 0
      ? `Locks go on: ${endured} of ${voters} may fail.`
      : "Locks stop until it is back, and leases end at their deadlines.";
  return { event, outcome, isSafe: true };
}
