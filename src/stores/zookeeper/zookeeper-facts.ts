import type { Probes } from "../doctor/read-facts.js";
import { measureRoundTrip, type RoundTrip } from "../doctor/round-trip.js";
import type { Layout } from "./layout.js";
import type { WatchingSession } from "./watching-session.js";
import type { Acl } from "./wire/acl.js";
import type { Connection } from "./wire/connection.js";
import type { Ensemble } from "./wire/ensemble.js";
import { multi } from "./wire/multi.js";
import { MAX_TIMEOUT_MS } from "./wire/opened-session.js";
import { check, create2, exists, getData, sync } from "./wire/requests.js";
import { askStatus, type ServerStatus } from "./wire/server-status.js";

/** A server of the ensemble. */
export interface NamedServer {
  readonly server: string;
  /** Null where the server does not answer. */
  readonly status: ServerStatus | null;
}

/** The state of an ensemble. */
export interface ZookeeperFacts {
  readonly servers: readonly NamedServer[];
  /** The time-out that a session gets which asks for the ttl. */
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
  const { port } = ensemble;
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
      measureRoundTrip(port.clock, () => {
        return session.use((connection) => connection.send(sync("/")), CALL_MS);
      }),
    isDirect: () => isDirect,
  };
}

function readServers({ addresses, settings, port }: Ensemble): Promise<NamedServer[]> {
  return Promise.all(
    addresses.map(async (address) => {
      const asked = askStatus(address, settings, { limitMs: CALL_MS, port });
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
  const parts = [create2(`${parent}/${NEVER}`, { acl }), check(`${parent}/${NEVER}/${NEVER}`)];
  const reply = await connection.send(multi(parts));
  return reply.type === "refused" && reply.at === 0 ? reply.error.message : null;
}

/** The znode itself, or the first one above it that exists; "" is the root. */
async function nearest(connection: Connection, path: string): Promise<string> {
  if (path === "") return "";
  const { stat } = await connection.send(exists(path));
  return stat ? path : await nearest(connection, path.slice(0, path.lastIndexOf("/")));
}
