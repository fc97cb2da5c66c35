/**
 * Locks in Redis or Valkey: one server, Sentinel, or Cluster.
 *
 * Why it is safe: Redis runs a script alone, and the script follows the rules of the ledger by the
 * clock of its server: it grants a lock only if the holders allow it. The deadline of a holder
 * counts from the moment when its request was sent. It lies before the expiry in Redis, so a
 * holder stops believing before Redis may grant the lock again, unless the clock of the server
 * jumps or its data is lost. After a restart without data, an eviction or a failover, Redis may
 * grant a lock that is still held. Then the tokens decide: they follow the clock in microseconds
 * and the highest token that any client saw, so the later grant has the higher one. With
 * `replicas`, a grant counts only when so many replicas have it: a failover to one of them keeps
 * the grant.
 */

import type { Store } from "../../contract/store.js";
import { InvalidOptionError, invalidValue } from "../../errors/index.js";
import { LedgerStore } from "../../families/ledger/ledger-store.js";
import { knownOptions } from "../../options/known-options.js";
import { checkNamespace } from "../namespace.js";
import type { Ioredis } from "../redis-client/ioredis.js";
import type { NodeRedis } from "../redis-client/node-redis.js";
import { driverOf, isClient } from "../redis-client/supported-clients.js";
import { RedisStore } from "./redis-store.js";

/** The client, and how safe a grant must be before it counts. */
export interface RedisStoreOptions {
  /**
   * A client of ioredis 5 or 6, iovalkey, or redis (node-redis) 5 or 6: plain, Sentinel or Cluster.
   * The store uses its database, key prefix, user and TLS settings, and never closes it.
   */
  readonly client: Ioredis | NodeRedis;
  /**
   * Locks in different namespaces are independent, even if their names are equal. Default: empty.
   */
  readonly namespace?: string;
  /** How many replicas must have a grant before it counts. Default 0: the master alone decides. */
  readonly replicas?: number;
  /** How long the replicas may take, from 1 to 4,000; then `ReplicationError`. Default 1,000. */
  readonly replicaTimeoutMs?: number;
  /** How long a handed-off grant waits for its confirm. Default: 2 s or a sixth of the ttl. */
  readonly offerMs?: number;
}

const MAX_REPLICA_TIMEOUT_MS = 4_000;
const NUMBERS = ["replicas", "replicaTimeoutMs", "offerMs"] as const;
const EXAMPLE = "must be an object with the client in it: redisStore({ client })";

/**
 * Locks in Redis by a client of yours. Throws `InvalidOptionError` if it cannot use the client.
 *
 * @example
 * import { Holdfast } from "holdfast";
 * import { redisStore } from "holdfast/redis";
 * import { Redis } from "ioredis";
 *
 * const locks = new Holdfast(redisStore({ client: new Redis() }));
 */
export function redisStore(options: RedisStoreOptions): Store {
  return open(options);
}

function open(options: RedisStoreOptions, onClose?: () => Promise<void>): Store {
  if (isClient(options)) throw invalidValue("options", "a client", EXAMPLE);
  const known = ["client", "namespace", ...NUMBERS] as const;
  const {
    client,
    namespace,
    replicas = 0,
    replicaTimeoutMs = 1_000,
    offerMs,
  } = knownOptions(options, known, EXAMPLE);
  if (!Number.isInteger(replicas) || replicas < 0) {
    throw new InvalidOptionError("replicas", replicas, "must be a whole number from 0");
  }
  if (!(replicaTimeoutMs >= 1 && replicaTimeoutMs <= MAX_REPLICA_TIMEOUT_MS)) {
    const rule = `must be from 1 to ${MAX_REPLICA_TIMEOUT_MS}`;
    throw new InvalidOptionError("replicaTimeoutMs", replicaTimeoutMs, rule);
  }
  const settings = {
    namespace: checkNamespace(namespace),
    replicas,
    replicaTimeoutMs: Math.round(replicaTimeoutMs),
  };
  const arbiter = new RedisStore(driverOf(client), onClose ? { ...settings, onClose } : settings);
  return new LedgerStore(arbiter, offerMs === undefined ? {} : { offerMs });
}

/**
 * Opens `redis://user:password@host:6379/5`, `rediss:` (TLS), `redis+cluster://host:7000` or
 * `redis+sentinel://host:26379/master/5`, the last two with TLS by `?tls=true`; more hosts as
 * `?host=host:port`, files of TLS as `ca`, `cert` and `key`, and `namespace`, `replicas`,
 * `replicaTimeoutMs`, `offerMs` likewise. Uses ioredis where installed, else redis.
 */
export async function openRedisStore(url: URL): Promise<Store> {
  // A program that brings its own client loads neither.
  const { readRedisUrl } = await import("./url.js");
  const { openConnectedClient } = await import("../redis-client/open-client.js");
  const { target, options } = await readRedisUrl(url, NUMBERS);
  const { client, close } = await openConnectedClient(target, "redis");
  try {
    return open({ client, ...options }, close);
  } catch (error) {
    await close();
    throw error;
  }
}
