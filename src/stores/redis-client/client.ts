import { StoreError } from "../../errors/index.js";
import type { Address } from "../store-url.js";

/** A connection to one server that only the store uses. It never reconnects. */
export interface OwnConnection {
  send(args: readonly string[]): Promise<unknown>;
  subscribe(channel: string, onMessage: (message: string) => void): Promise<unknown>;
  onClose(listener: () => void): void;
  close(): void;
}

/** A server that accepts writes, through the client of the user. */
export interface Master {
  /** Its address, as far as the client shows it. */
  readonly address: string;
  send(args: readonly string[]): Promise<unknown>;
}

/** The failovers that a sentinel could bring about. */
export interface SentinelState {
  /** How many sentinels know each other. */
  readonly sentinels: number;
  readonly quorum: number;
  /** The answer to `SENTINEL CKQUORUM`. */
  readonly verdict: string;
}

/** A client library behind one interface: the user's client, and further connections like it. */
export interface Driver {
  readonly isCluster: boolean;
  /** Only one server at a time answers, and `changes` rises whenever it may be another one. */
  readonly hasOneConnection: boolean;
  readonly database: number;
  /** The address of the server; null where the client finds its server by itself. */
  readonly address: string | null;
  /** The addresses of servers or sentinels that the client knows, as far as it shows them. */
  servers(): readonly Address[];
  /** The prefix that the client puts before every key. */
  readonly keyPrefix: string;
  /** How often the connection has changed. The client may have repeated a call at each change. */
  changes(): number;
  /** Sends one command by the user's client, to the server of `key`. */
  send(key: string, command: string, args: readonly string[]): Promise<unknown>;
  /** The servers that hold the locks: one, or all masters of a Cluster. */
  masters(): Promise<readonly Master[]>;
  /** Asks a sentinel of the client; null where there is none, or the client does not show it. */
  sentinel?(): Promise<SentinelState | null>;
  /** Opens a connection to the server of `key`, or to any server. */
  open(key: string | null): Promise<OwnConnection>;
}

/** A client that reports changes of its connection by events. */
export interface Emitter {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

const counts = new WeakMap<Emitter, { changes: number; failure: unknown }>();

/**
 * Counts how often the connection of a client changed. All stores of a client share one set of
 * listeners: clients warn about more than ten.
 */
export function countChanges(
  client: Emitter,
  watch: (onChange: (event?: unknown) => void) => void,
): () => number {
  let count = counts.get(client);
  if (!count) {
    const fresh = { changes: 0, failure: undefined as unknown };
    counts.set(client, fresh);
    watch((event) => {
      fresh.changes += 1;
      if (event instanceof Error) fresh.failure = event;
    });
    count = fresh;
  }
  const counted = count;
  return () => counted.changes;
}

/** The last failure that the client reported by one of the counted events. */
export function lastFailure(client: Emitter): unknown {
  return counts.get(client)?.failure;
}

/**
 * The name of a script in Redis. A static import of `node:crypto` loads all parts of it, also those
 * that no program here uses.
 */
export function sha1(text: string): string {
  const { createHash } = process.getBuiltinModule("node:crypto");
  return createHash("sha1").update(text).digest("hex");
}

/**
 * Returns nothing, or the version of a server that does not know HRANDFIELD, which came with Redis
 * 6.2. A server that knows the command refuses a user without the right to call it in other words.
 */
const PROBE = `
local answer = redis.pcall('HRANDFIELD', KEYS[1])
if type(answer) ~= 'table' or not string.find(answer.err or '', 'nknown') then return false end
local info = redis.pcall('INFO', 'server')
return type(info) == 'string' and string.match(info, 'redis_version:(%S+)') or 'before 6.2'`;

/**
 * Rejects where the server of `key` is too old for the scripts of the stores: a script would fail
 * in the middle, after a write. The check comes before a script is sent in full. The server keeps
 * the script from then on, so a call by the hash runs only on a server that has passed.
 */
export async function checkVersion(driver: Driver, key: string, store: string): Promise<void> {
  const tooOld = await driver.send(key, "eval", [PROBE, "1", key]);
  if (!tooOld) return;
  throw new StoreError(
    `This server is Redis ${tooOld}: Redis 6.2 or newer, or Valkey, is needed.`,
    { outcome: "not_applied", retryable: false, store },
  );
}
