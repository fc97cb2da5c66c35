/**
 * Locks on a majority of independent Redis or Valkey servers: the Redlock algorithm, with tokens.
 *
 * Why it is safe: a node votes for one owner at a time, until the vote expires, and any two
 * majorities share a node. A holder's deadline counts from before its requests were sent and lies
 * before the expiry at a majority. So the holder stops before another majority can come about,
 * unless the clocks of servers jump. Tokens are ballots: a node votes only above the highest ballot
 * that it stored, and only votes at exactly one ballot make a grant. So the next grant shares a
 * node that knows a lower ballot. Ballots are multiples of 64: all tokens of a ballot are below the
 * next ballot. An attempt that fails closes its ballot on all nodes, so that no late request
 * revives it. A node that restarted or lost its data does not vote before every lease that it may
 * have forgotten is over, and never below a ballot that a majority of the other nodes knows of.
 * With `client`, one server is the majority, and no other node remembers what it forgets.
 */

import type { Store } from "../../contract/store.js";
import { InvalidOptionError, invalidValue } from "../../errors/index.js";
import { knownOptions } from "../../options/known-options.js";
import { isWellFormed } from "../../rules/name.js";
import { checkNamespace } from "../namespace.js";
import type { Driver } from "../redis-client/client.js";
import type { Ioredis } from "../redis-client/ioredis.js";
import type { NodeRedis } from "../redis-client/node-redis.js";
import { driverOf } from "../redis-client/supported-clients.js";
import { MAX_TTL_MS } from "./membership.js";
import { NODE_SCRIPTS, RedlockNode } from "./quorum.js";
import { RedlockStore } from "./redlock-store.js";
import { openNodes, readRedlockUrl } from "./url.js";

/** The clients of the servers, and how far the servers are trusted. */
export interface RedlockStoreOptions {
  /**
   * One client for each server: ioredis 5 or 6, iovalkey, or redis (node-redis) 5 or 6. At least 2,
   * better 3 or 5; all processes must name the same servers. The store never closes these clients.
   */
  readonly clients?: readonly (Ioredis | NodeRedis)[];
  /**
   * Instead of `clients`: the client of the one server that decides alone. The store never closes
   * this client.
   */
  readonly client?: Ioredis | NodeRedis;
  /**
   * The names of the servers, in the order of `clients`. All processes must use the same names.
   * Default: the host and port of each client. Needed if processes reach a server by different
   * addresses.
   */
  readonly nodeNames?: readonly string[];
  /**
   * Locks in different namespaces are independent, even if their names are equal. Default: empty.
   */
  readonly namespace?: string;
  /**
   * Stands before the name of a lock in its key, as other programs have it: `mutex:` for
   * redis-semaphore. Not together with `namespace`. Default: none.
   */
  readonly prefix?: string;
  /**
   * A waiter polls the key at least this often, because other programs do not announce a release.
   * Default: the interval rises from 0.2 s to 5 s.
   */
  readonly pollMs?: number;
  /**
   * How long to wait for one server; never more than a fifth of the ttl. Default 50; 200 with
   * `client`.
   */
  readonly nodeTimeoutMs?: number;
  /**
   * How far the clocks of servers and clients may drift apart, as a part of the ttl. Default 0.01.
   */
  readonly driftFactor?: number;
  /**
   * The longest usual lease: a server that restarted waits this long before it votes. The
   * store announces longer leases to the servers, which then wait longer. Default 30,000.
   */
  readonly maxTtlMs?: number;
  /**
   * `"now"`: no process holds a lock of these servers, so they vote at once where no majority
   * remembers. Default `"wait"`; with `client`, `"now"`.
   */
  readonly bootstrap?: "wait" | "now";
}

const MIN_NODES = 2;
const MAX_DRIFT = 0.2;
const SINGLE_SERVER_TIMEOUT_MS = 200;
const NUMBERS = ["nodeTimeoutMs", "driftFactor", "maxTtlMs", "pollMs"] as const;
const TEXTS = ["namespace", "prefix", "bootstrap"] as const;
const EXAMPLE = "must be an object with the clients in it: redlockStore({ clients })";

/**
 * Locks on a majority of servers. Throws `InvalidOptionError` where the options cannot work.
 *
 * @example
 * import { Holdfast } from "holdfast";
 * import { redlockStore } from "holdfast/redlock";
 * import { Redis } from "ioredis";
 *
 * const clients = ["a", "b", "c"].map((host) => new Redis({ host }));
 * const locks = new Holdfast(redlockStore({ clients }));
 */
export function redlockStore(options: RedlockStoreOptions): Store {
  return open(options);
}

function open(options: RedlockStoreOptions, onClose?: () => Promise<unknown>): Store {
  const known = ["client", "clients", "nodeNames", ...TEXTS, ...NUMBERS] as const;
  const given = Array.isArray(options) ? "a list of clients" : options;
  const all = knownOptions(given as RedlockStoreOptions, known, EXAMPLE);
  const { client, driftFactor = 0.01, maxTtlMs = 30_000, pollMs, prefix = "" } = all;
  const isSingleServer = client !== undefined;
  const {
    nodeTimeoutMs = isSingleServer ? SINGLE_SERVER_TIMEOUT_MS : 50,
    bootstrap = isSingleServer ? "now" : "wait",
  } = all;
  const namespace = checkNamespace(all.namespace);
  const isPrefix = typeof prefix === "string" && isWellFormed(prefix);
  demand(isPrefix, "prefix", prefix, "must be a well-formed string");
  const isOne = prefix === "" || namespace === "";
  demand(isOne, "prefix", prefix, "must not be given together with a namespace");
  demand(nodeTimeoutMs >= 1, "nodeTimeoutMs", nodeTimeoutMs, "must be at least 1");
  demand(
    driftFactor >= 0 && driftFactor <= MAX_DRIFT,
    "driftFactor",
    driftFactor,
    `must be from 0 to ${MAX_DRIFT}`,
  );
  const isLength = maxTtlMs >= 1 && maxTtlMs <= MAX_TTL_MS;
  demand(isLength, "maxTtlMs", maxTtlMs, `must be from 1 to ${MAX_TTL_MS}`);
  demand(pollMs === undefined || pollMs >= 1, "pollMs", pollMs, "must be at least 1");
  const isKnown = bootstrap === "wait" || bootstrap === "now";
  demand(isKnown, "bootstrap", bootstrap, 'must be "wait" or "now"');
  const drivers = clientsOf(all).map(driverOf);
  const nodes = isSingleServer ? drivers.map(singleServerNode) : nodesOf(drivers, all.nodeNames);
  const terms = { namespace, prefix, nodeTimeoutMs, driftFactor, maxTtlMs, bootstrap };
  const waiting = pollMs === undefined ? {} : { pollMs };
  return new RedlockStore(nodes, { ...terms, ...waiting, ...(onClose && { onClose }) });
}

function clientsOf({
  client,
  clients,
  nodeNames,
}: RedlockStoreOptions): readonly (Ioredis | NodeRedis)[] {
  demand(
    client === undefined || clients === undefined,
    "client",
    "beside clients",
    "must be given alone: one client for one server, or clients for several",
  );
  const hasNames = client !== undefined && nodeNames !== undefined;
  demand(!hasNames, "nodeNames", nodeNames, "are for several servers");
  if (client !== undefined) return [client];
  demand(
    Array.isArray(clients) && clients.length >= MIN_NODES,
    "clients",
    clients?.length,
    "must be one client for each server, 3 or more (2 at least); for one server give client",
  );
  return clients;
}

/** The server that decides alone. Its name is shown in messages only. */
function singleServerNode(driver: Driver): RedlockNode {
  const { isCluster, address } = driver;
  const name = isCluster ? "the Cluster" : (address ?? "the master");
  return new RedlockNode(name, driver, isCluster ? NODE_SCRIPTS.spread : NODE_SCRIPTS.single);
}

function nodesOf(drivers: readonly Driver[], names?: readonly string[]): RedlockNode[] {
  demand(
    names === undefined || names.length === drivers.length,
    "nodeNames",
    names,
    "must have one name for each client",
  );
  const nodes = drivers.map((driver, at) => {
    if (driver.isCluster) {
      throw invalidValue("clients", "a Cluster", "must each be of one server: a Cluster is none");
    }
    const name = names?.[at] ?? driver.address?.replace(/^(localhost|::1):/, "127.0.0.1:");
    const rule = "must name each server, where a client finds it by Sentinel";
    demand(name !== undefined, "nodeNames", name, rule);
    demand(!/[,\s]/.test(name), "nodeNames", name, "must have no commas and no spaces");
    return new RedlockNode(name, driver);
  });
  const isDistinct = new Set(nodes.map(({ name }) => name)).size === nodes.length;
  const all = nodes.map(({ name }) => name).join(",");
  demand(isDistinct, names ? "nodeNames" : "clients", all, "must be of different servers");
  return nodes;
}

function demand(isMet: boolean, option: string, value: unknown, rule: string): asserts isMet {
  if (!isMet) throw new InvalidOptionError(option, value, rule);
}

/**
 * Opens `redlock://user:password@h1:6379,h2:6379,h3:6379/5`, or `redlocks:` with TLS, whose files
 * are the parameters `ca`, `cert` and `key`. Options are parameters too, such as `bootstrap=now`.
 * With one host, or as `redlock+sentinel:` or `redlock+cluster:`, a single server decides. Uses the
 * package ioredis if it is installed, otherwise redis, otherwise iovalkey.
 */
export async function openRedlockStore(url: URL): Promise<Store> {
  const { targets, options: given } = await readRedlockUrl(url, TEXTS, NUMBERS);
  const { clients, names, close } = await openNodes(targets);
  const [client, ...others] = clients;
  const servers = others.length > 0 ? { clients, nodeNames: names } : { client };
  const options = { ...servers, ...given } as RedlockStoreOptions;
  try {
    return open(options, close);
  } catch (error) {
    await close();
    throw error;
  }
}
