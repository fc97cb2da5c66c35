import type { ScriptClient } from "../script-client.js";
import type { LostLockError } from "./errors.js";
import type { Lock } from "./lock.js";

const REFRESH_PART = 0.8;

/** Hears that a lock was lost. */
export type LockLostCallback = (this: Lock, err: LostLockError) => void;

/** The times and counts of a lock, in milliseconds. */
export interface TimeoutOptions {
  /** After this time without a refresh the lock expires. Default 10 000. */
  lockTimeout?: number;
  /** How long `acquire` and `tryAcquire` try. Default 10 000. */
  acquireTimeout?: number;
  /** How often they try. Default: without an end. */
  acquireAttemptsLimit?: number;
  /** The time between two attempts. Default 10. */
  retryInterval?: number;
  /** The time between two refreshes; 0 for none. Default: 0.8 of `lockTimeout`. */
  refreshInterval?: number;
}

/** The options of a lock. */
export interface LockOptions extends TimeoutOptions {
  /** Use `identifier` and `acquiredExternally` instead. */
  externallyAcquiredIdentifier?: string;
  /** Use `identifier` instead. */
  identifierSuffix?: string;
  /**
   * The value at the key, or the member of the set. Default: a random one for each acquisition. A
   * chosen one is used for all of them, so that a late request of one may end the next.
   */
  identifier?: string;
  /** Another process acquired the lock with this identifier: it is refreshed, not acquired. */
  acquiredExternally?: true;
  /** Hears that the lock was lost. Default: a rejection that is not handled. */
  onLockLost?: LockLostCallback;
}

/** The default options of `redis-semaphore`. */
export const defaultTimeoutOptions: {
  lockTimeout: number;
  acquireTimeout: number;
  acquireAttemptsLimit: number;
  retryInterval: number;
} = {
  lockTimeout: 10_000,
  acquireTimeout: 10_000,
  acquireAttemptsLimit: Number.POSITIVE_INFINITY,
  retryInterval: 10,
};

/** A lock of this process: the times that it goes by, and the identifier that it goes under. */
export interface LockRules extends Required<TimeoutOptions> {
  readonly identifier: string;
  /** Makes the identifier of a further acquisition: the same one where the user has chosen it. */
  readonly nextIdentifier: () => string;
  readonly acquiredExternally: boolean;
  readonly onLockLost: LockLostCallback;
}

/** Options with all defaults. Throws where identifiers are given in a way that cannot work. */
export function rulesOf(options: LockOptions = {}): LockRules {
  const { identifier, acquiredExternally, externallyAcquiredIdentifier: external } = options;
  if (identifier !== undefined && (!identifier || typeof identifier !== "string")) {
    throw new Error("identifier must be not empty random string");
  }
  if (acquiredExternally && !identifier) {
    throw new Error("acquiredExternally=true meanless without custom identifier");
  }
  if (external && (identifier || acquiredExternally)) {
    throw new Error("Invalid usage. Use custom identifier and acquiredExternally: true");
  }
  const chosen = identifier || external;
  const nextIdentifier = (): string => chosen || randomIdentifier(options.identifierSuffix);
  const times = { ...defaultTimeoutOptions, ...withoutUndefined(options) };
  return {
    ...times,
    refreshInterval: options.refreshInterval ?? Math.round(times.lockTimeout * REFRESH_PART),
    identifier: nextIdentifier(),
    nextIdentifier,
    acquiredExternally: Boolean(acquiredExternally || external),
    onLockLost: options.onLockLost ?? throwLoss,
  };
}

function withoutUndefined(options: LockOptions): LockOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function randomIdentifier(suffix: string | undefined): string {
  const uuid = process.getBuiltinModule("node:crypto").randomUUID();
  return suffix ? `${uuid}-${suffix}` : uuid;
}

/** As redis-semaphore has it: a loss that no callback hears is a rejection without a handler. */
function throwLoss(err: LostLockError): never {
  throw err;
}

// The checks of arguments have the messages of redis-semaphore.

export function clientOf(client: ScriptClient): ScriptClient {
  if (!client) throw new Error('"client" is required');
  return client;
}

export function clientsOf(clients: ScriptClient[]): ScriptClient[] {
  if (!Array.isArray(clients)) throw new Error('"clients" array is required');
  if (clients.length === 0) throw new Error('"clients" must have at least one client');
  return clients;
}

export function keyOf(key: string): string {
  if (!key) throw new Error('"key" is required');
  if (typeof key !== "string") throw new Error('"key" must be a string');
  return key;
}

export function countOf(argument: "limit" | "permits", value: number): number {
  if (!value) throw new Error(`"${argument}" is required`);
  if (typeof value !== "number") throw new Error(`"${argument}" must be a number`);
  return value;
}
