import { majorityOf } from "../../rules/majority.js";
import type { ScriptClient } from "../script-client.js";
import { permitLayout } from "./holding.js";
import { Lock } from "./lock.js";
import { clientOf, clientsOf, countOf, keyOf, type LockOptions } from "./options.js";

/** One of `limit` permits at the key `semaphore:<key>` of one server. */
export class Semaphore extends Lock {
  /** Throws where the client, the key or the limit is missing. */
  constructor(client: ScriptClient, key: string, limit: number, options?: LockOptions) {
    const layout = permitLayout(keyOf(key), countOf("limit", limit), null);
    super("semaphore", [clientOf(client)], layout, options);
  }
}

/** Several of `limit` permits at the key `semaphore:<key>` of one server. */
export class MultiSemaphore extends Lock {
  /** Throws where the client, the key, the limit or the permits are missing. */
  constructor(
    client: ScriptClient,
    key: string,
    limit: number,
    permits: number,
    options?: LockOptions,
  ) {
    const layout = permitLayout(keyOf(key), countOf("limit", limit), countOf("permits", permits));
    super("multi-semaphore", [clientOf(client)], layout, options);
  }
}

/** One of `limit` permits on a majority of independent servers. */
export class RedlockSemaphore extends Lock {
  /** Throws where a majority cannot keep the limit: see the guide for migrating. */
  constructor(clients: ScriptClient[], key: string, limit: number, options?: LockOptions) {
    const known = demandKept(clientsOf(clients), countOf("limit", limit));
    super("redlock-semaphore", known, permitLayout(keyOf(key), limit, null), options);
  }
}

/** Several of `limit` permits on a majority of independent servers. */
export class RedlockMultiSemaphore extends Lock {
  /** Throws where a majority cannot keep the limit: see the guide for migrating. */
  constructor(
    clients: ScriptClient[],
    key: string,
    limit: number,
    permits: number,
    options?: LockOptions,
  ) {
    const known = demandKept(clientsOf(clients), countOf("limit", limit));
    const layout = permitLayout(keyOf(key), limit, countOf("permits", permits));
    super("redlock-multi-semaphore", known, layout, options);
  }
}

/**
 * All servers together have `servers` × `limit` permits, and each holder takes `votes` of them. If
 * `votes` × (`limit` + 1) is no more than that, one holder too many finds its majority.
 */
function demandKept(clients: ScriptClient[], limit: number): ScriptClient[] {
  const servers = new Set(clients).size;
  const votes = majorityOf(servers);
  if (votes * (limit + 1) > servers * limit) return clients;
  throw new Error(
    `A majority of ${servers} servers does not keep a limit of ${limit}: ` +
      `${Math.floor((servers * limit) / votes)} holders with ${votes} votes each fit on them. ` +
      "Use Semaphore or MultiSemaphore on one server, or locks.semaphore() of holdfast.",
  );
}
