import { invalidValue } from "../../errors.js";
import type { Address } from "../store-url.js";
import { ioredisDriver, isIoredis } from "./ioredis.js";
import { isNodeRedis, nodeRedisDriver } from "./node-redis.js";
import { describeClient, isOldClient, SUPPORTED_CLIENTS } from "./supported-clients.js";

/** A connection of our own to one server. It never reconnects: who needs it opens another. */
export interface OwnConnection {
  send(args: readonly string[]): Promise<unknown>;
  subscribe(channel: string, onMessage: (message: string) => void): Promise<unknown>;
  onClose(listener: () => void): void;
  close(): void;
}

/** A client library behind one face: the user's client, and connections like its own. */
export interface Driver {
  readonly isCluster: boolean;
  /** Only one server at a time answers, and `changes` tells whenever that may be another. */
  readonly hasOneConnection: boolean;
  readonly database: number;
  /** Where its server is, as the client was told; null where it finds that out by itself. */
  readonly address: string | null;
  /** Where the client looks for its servers or sentinels, as far as it tells. */
  servers(): readonly Address[];
  /** What the client puts before every key by itself. */
  readonly keyPrefix: string;
  /** How often the client's connection has changed: a call may have been sent twice over it. */
  changes(): number;
  /** One command by the user's client, to the server that serves `key`. */
  send(key: string, command: string, args: readonly string[]): Promise<unknown>;
  /** Opens a connection to the server that serves `key`, or to any. */
  open(key: string | null): Promise<OwnConnection>;
}

/** Whether it is a client, also one that cannot be used. */
export function isClient(value: unknown): boolean {
  return isIoredis(value) || isNodeRedis(value) || isOldClient(value);
}

/** Tells the supported clients apart by what they can do; nothing of them is imported. */
export function driverOf(client: unknown): Driver {
  if (isIoredis(client)) return ioredisDriver(client);
  if (isNodeRedis(client)) return nodeRedisDriver(client);
  throw invalidValue(
    "client",
    describeClient(client),
    `must be a client, Sentinel client or Cluster of ${SUPPORTED_CLIENTS}`,
  );
}
