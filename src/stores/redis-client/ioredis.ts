import { StoreError } from "../../errors/index.js";
import type { Address } from "../store-url.js";
import {
  countChanges,
  type Driver,
  type Emitter,
  type Master,
  type OwnConnection,
  type SentinelState,
} from "./client.js";
import { slotOf } from "./cluster-slot.js";
import { saidBy } from "./errors.js";

/**
 * How long a connection of the store waits for the server to close its end. Meanwhile a timer of
 * ioredis keeps the process alive, even if the server has closed before: by default for 2 s.
 */
export const DISCONNECT_TIMEOUT_MS = 0;

/** The members by which a client or Cluster of ioredis is recognized. */
export interface Ioredis extends Emitter {
  readonly status: string;
  readonly options: object;
  call(...args: never[]): Promise<unknown>;
  duplicate(...args: never[]): unknown;
}

/** The used members of ioredis 5 and 6 and of iovalkey: one connection, direct or by Sentinel. */
interface Plain extends Emitter {
  readonly status: string;
  readonly options: {
    readonly keyPrefix?: unknown;
    readonly db?: unknown;
    readonly sentinels?: unknown;
    readonly name?: unknown;
    readonly sentinelUsername?: unknown;
    readonly sentinelPassword?: unknown;
    readonly sentinelTLS?: unknown;
    readonly path?: unknown;
    readonly host?: string;
    readonly port?: number;
  };
  readonly stream?: { unref?(): unknown };
  call(command: string, args: readonly string[]): Promise<unknown>;
  duplicate(override: object): Plain;
  disconnect(): void;
}

interface Cluster extends Emitter {
  readonly status: string;
  readonly options: {
    readonly keyPrefix?: unknown;
    readonly redisOptions?: object;
    readonly scaleReads?: unknown;
  };
  readonly slots: readonly (readonly string[] | undefined)[];
  call(command: string, args: readonly string[]): Promise<unknown>;
  readonly startupNodes?: readonly unknown[];
  nodes(role: "master" | "all"): readonly Plain[];
}

export function isIoredis(client: unknown): client is Ioredis {
  if (typeof client !== "object" || client === null) return false;
  const { status, options, call, duplicate } = client as Partial<Ioredis>;
  const hasCalls = typeof call === "function" && typeof duplicate === "function";
  const isClient = hasCalls && typeof status === "string" && typeof options === "object";
  return isClient && !isOldIoredis(client);
}

/** Options that ioredis 5 dropped: of a plain client, and of a Cluster. */
const OLD_OPTIONS = ["dropBufferSupport", "showFriendlyErrorStack"];

/** ioredis up to version 4 lacks a method that came with 5, and has options that 5 dropped. */
export function isOldIoredis(client: object): boolean {
  const { options } = client as Partial<Ioredis>;
  if (typeof options !== "object" || "createScanStream" in client) return false;
  return OLD_OPTIONS.some((option) => option in options);
}

export function ioredisDriver(client: Ioredis): Driver {
  const isCluster = "isCluster" in client && client.isCluster === true;
  return isCluster
    ? clusterDriver(client as unknown as Cluster)
    : plainDriver(client as unknown as Plain);
}

function plainDriver(client: Plain): Driver {
  const { keyPrefix, db, sentinels, path, host, port } = client.options;
  const address = sentinels ? null : String(path ?? `${host}:${port}`);
  return {
    isCluster: false,
    hasOneConnection: true,
    database: Number(db ?? 0),
    address,
    servers: () => (sentinels ? addressesOf(sentinels) : path ? [] : addressesOf([{ host, port }])),
    keyPrefix: String(keyPrefix ?? ""),
    changes: countChanges(client, (onChange) => client.on("close", onChange)),
    send: (_key, command, args) => call(client, command, args),
    masters: async () => [masterOf(client, address ?? "the master")],
    ...(sentinels ? { sentinel: () => sentinelState(client, sentinels) } : {}),
    open: async () => own(client),
  };
}

function clusterDriver(client: Cluster): Driver {
  const { keyPrefix = "", redisOptions = {} } = client.options;
  const prefix = String((redisOptions as { keyPrefix?: unknown }).keyPrefix ?? keyPrefix);
  const send: Driver["send"] = (_key, command, args) => call(client, command, args);
  return {
    isCluster: true,
    hasOneConnection: false,
    database: 0,
    address: null,
    servers() {
      const known = client.nodes("all").map(({ options: { host, port } }) => ({ host, port }));
      return addressesOf([...known, ...(client.startupNodes ?? [])]);
    },
    keyPrefix: prefix,
    changes: countChanges(client, (onChange) => {
      const watch = (node: unknown): void => void (node as Emitter).on("close", onChange);
      for (const node of client.nodes("master")) watch(node);
      client.on("+node", watch);
    }),
    send,
    masters: async () =>
      client.nodes("master").map((node) => {
        return masterOf(node, `${node.options.host}:${node.options.port}`);
      }),
    async open(key) {
      // A redirection corrects the slots that the client knows; a write goes to the master.
      if (key !== null) await send(key, "hdel", [key, "?"]);
      const nodes = client.nodes("master");
      const [address] = (key === null ? undefined : client.slots[slotOf(prefix + key)]) ?? [];
      const node =
        nodes.find(({ options: { host, port } }) => `${host}:${port}` === address) ??
        (key === null ? nodes[Math.floor(Math.random() * nodes.length)] : undefined);
      if (node) return own(node);
      throw new StoreError("The Cluster client knows no node for this yet.", {
        outcome: "not_applied",
      });
    },
  };
}

/** Reads addresses from an option of the client, which has several forms. */
function addressesOf(given: unknown): Address[] {
  return (Array.isArray(given) ? given : []).flatMap((one) => {
    const { host = "127.0.0.1", port = 6379 } = typeof one === "object" ? (one ?? {}) : {};
    return typeof host === "string" ? [{ host, port: Number(port) }] : [];
  });
}

function masterOf(client: Plain, address: string): Master {
  return { address, send: ([command = "", ...args]) => call(client, command, args) };
}

/** The opinion of the first sentinel that is known. */
async function sentinelState(client: Plain, sentinels: unknown): Promise<SentinelState | null> {
  const [address] = addressesOf(sentinels);
  if (!address) return null;
  const { name, sentinelUsername, sentinelPassword, sentinelTLS } = client.options;
  const connection = own(client, {
    ...address,
    sentinels: null,
    db: 0,
    username: sentinelUsername,
    password: sentinelPassword,
    tls: sentinelTLS,
    enableReadyCheck: false,
  });
  try {
    const fields = (await connection.send(["sentinel", "master", String(name)])) as unknown[];
    const field = (key: string): number => Number(fields[fields.indexOf(key) + 1]);
    const asked = connection.send(["sentinel", "ckquorum", String(name)]);
    const verdict = String(await asked.catch((error: unknown) => saidBy(error)));
    return { sentinels: field("num-other-sentinels") + 1, quorum: field("quorum"), verdict };
  } finally {
    connection.close();
  }
}

/** A client that was closed, or that gave up reconnecting, never answers again. */
function call(client: Plain | Cluster, command: string, args: readonly string[]): Promise<unknown> {
  if (client.status !== "end") return client.call(command, args);
  const advice = "The client's connection has ended: connect() it again, and keep it open.";
  return Promise.reject(new StoreError(advice, { outcome: "not_applied", retryable: false }));
}

/** A connection like that of the client (server, user, TLS, database), for the store alone. */
function own(client: Plain, place: object = {}): OwnConnection {
  const connection = client.duplicate({
    ...place,
    keyPrefix: "",
    lazyConnect: false,
    readOnly: false,
    enableOfflineQueue: true,
    enableAutoPipelining: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: null,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
    reconnectOnError: null,
    // WAIT takes long, and a subscription is silent: both have limits of their own.
    commandTimeout: undefined,
    socketTimeout: undefined,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  });
  // A failure shows as the end of the connection, or in the answers.
  connection.on("error", () => {});
  // The connection alone must not keep the process alive.
  connection.on("connect", () => connection.stream?.unref?.());
  return {
    send: ([command = "", ...args]) => connection.call(command, args),
    subscribe(channel, onMessage) {
      connection.on("message", (_channel, message) => onMessage(String(message)));
      return connection.call("subscribe", [channel]);
    },
    onClose: (listener) => void connection.on("end", listener),
    close: () => connection.disconnect(),
  };
}
