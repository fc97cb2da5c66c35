/**
 * Locks in Redis or Valkey: one server, Sentinel, or Cluster.
 *
 * Why it is safe: a script runs alone in its server, by that server's clock, and follows the rules
 * of the ledger; a grant is made only where the holders allow it. A holder's own deadline counts
 * from the moment its request was sent and lies before the expiry in Redis, so it stops believing
 * before Redis may grant to another, unless the server's clock jumps or its data is lost. What a
 * restart without data, an eviction or a failover forgets, others may take: there the tokens
 * decide, which follow the clock in microseconds and the highest that any client saw, so that the
 * later grant has the higher one. With `replicas`, a grant counts only when so many replicas have
 * it: a failover to one of them keeps it.
 */
import { InvalidOptionError, invalidValue } from "../../errors.js";
import { knownOptions } from "../../known-options.js";
import type { Store } from "../../store.js";
import { ArbiterStore } from "../arbiter/arbiter-store.js";
import { checkNamespace } from "../namespace.js";
import { driverOf, isClient } from "../redis-client/driver.js";
import type { Ioredis } from "../redis-client/ioredis.js";
import type { NodeRedis } from "../redis-client/node-redis.js";
import { openConnectedClient } from "../redis-client/open-client.js";
import { RedisArbiter } from "./redis-arbiter.js";

/** The client to use, and how much of the server to trust. */
export interface RedisStoreOptions {
  /**
   * A client of ioredis 5 or 6 or of redis (node-redis) 5 or 6: plain, Sentinel or Cluster. Its
   * database, key prefix, user and TLS settings are kept. It stays yours: it is never closed.
   */
  readonly client: Ioredis | NodeRedis;
  /** Locks of different namespaces do not meet. Default: the empty one. */
  readonly namespace?: string;
  /** How many replicas must have a grant before it counts. Default 0: the master alone decides. */
  readonly replicas?: number;
  /** How long they may take, from 1 to 4,000; then `ReplicationError`. Default 1,000. */
  readonly replicaTimeoutMs?: number;
  /** How long a handed-off grant waits for its confirm. Default: 2 s or a sixth of the ttl. */
  readonly offerMs?: number;
}

const MOST_REPLICA_TIMEOUT_MS = 4_000;
const NUMBERS = ["replicas", "replicaTimeoutMs", "offerMs"] as const;
const EXAMPLE = "must be an object with the client in it: redisStore({ client })";

/**
 * Locks in Redis by a client of yours. Throws `InvalidOptionError` where it does not know it.
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
  if (!(replicaTimeoutMs >= 1 && replicaTimeoutMs <= MOST_REPLICA_TIMEOUT_MS)) {
    const rule = `must be from 1 to ${MOST_REPLICA_TIMEOUT_MS}`;
    throw new InvalidOptionError("replicaTimeoutMs", replicaTimeoutMs, rule);
  }
  const settings = {
    namespace: checkNamespace(namespace),
    replicas,
    replicaTimeoutMs: Math.round(replicaTimeoutMs),
  };
  const arbiter = new RedisArbiter(driverOf(client), onClose ? { ...settings, onClose } : settings);
  return new ArbiterStore(arbiter, offerMs === undefined ? {} : { offerMs });
}

/**
 * Opens `redis://user:password@host:6379/5`, `rediss:` (TLS), `redis+cluster://host:7000` or
 * `redis+sentinel://host:26379/master/5`, the last two with TLS by `?tls=true`; more hosts as
 * `?host=host:port`, files of TLS as `ca`, `cert` and `key`, and `namespace`, `replicas`,
 * `replicaTimeoutMs`, `offerMs` likewise. Uses ioredis where installed, else redis.
 */
export async function openRedisStore(url: URL): Promise<Store> {
  // A program that brings its own client does not load this.
  const { readRedisUrl } = await import("./redis-url.js");
  const { target, options } = await readRedisUrl(url, NUMBERS);
  const { client, close } = await openConnectedClient(target, "redis");
  try {
    return open({ client, ...options }, close);
  } catch (error) {
    await close();
    throw error;
  }
}
