import { invalidValue } from "../../errors/index.js";
import type { Address } from "../store-url.js";
import { ioredisDriver, isIoredis } from "./ioredis.js";
import { isNodeRedis, nodeRedisDriver } from "./node-redis.js";
import { describeClient, isOldClient, SUPPORTED_CLIENTS } from "./supported-clients.js";

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

/** Whether the value is a client, also one of an unsupported version. */
export function isClient(value: unknown): boolean {
  return isIoredis(value) || isNodeRedis(value) || isOldClient(value);
}

/** Recognizes the supported clients by their methods; it imports no client library. */
export function driverOf(client: unknown): Driver {
  if (isIoredis(client)) return ioredisDriver(client);
  if (isNodeRedis(client)) return nodeRedisDriver(client);
  throw invalidValue(
    "client",
    describeClient(client),
    `must be a client, Sentinel client or Cluster of ${SUPPORTED_CLIENTS}`,
  );
}
