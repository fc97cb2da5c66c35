import { StoreError } from "../../errors.js";
import { systemTimers } from "../../time/timers.js";
import type { Address } from "../store-url.js";
import { slotOf } from "./cluster-slot.js";
import { countChanges, type Emitter, lastFailure } from "./connection-changes.js";
import type { Driver, OwnConnection } from "./driver.js";

/** What a client, Cluster or Sentinel client of node-redis is known by. */
export interface NodeRedis extends Emitter {
  readonly isOpen: boolean;
  sendCommand(...args: never[]): Promise<unknown>;
  connect(): Promise<unknown>;
  /** Since version 5. */
  destroy(): unknown;
}

/** What we use of node-redis 5 and 6. */
interface Plain extends Emitter {
  readonly isOpen: boolean;
  readonly options?: {
    readonly database?: unknown;
    readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string };
  };
  sendCommand(args: readonly string[], options?: object): Promise<unknown>;
  duplicate(overrides: object): Plain;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  destroy(): void;
  unref(): void;
}

interface Master {
  readonly address: string;
  readonly host?: string;
  readonly port?: number;
}

interface Cluster extends Emitter {
  readonly masters: readonly Master[];
  readonly slots: readonly ({ readonly master: Master } | undefined)[];
  nodeClient(node: Master): Plain | Promise<Plain>;
  sendCommand(
    key: string,
    isReadonly: boolean,
    args: readonly string[],
    options?: object,
  ): Promise<unknown>;
}

interface Sentinel extends Emitter {
  getMasterNode(): unknown;
  sendCommand(isReadonly: boolean, args: readonly string[], options?: object): Promise<unknown>;
  _execute(isReadonly: boolean, act: (client: Plain) => Promise<unknown>): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
}

export function isNodeRedis(client: unknown): client is NodeRedis {
  if (typeof client !== "object" || client === null) return false;
  const { sendCommand, connect, destroy } = client as Partial<NodeRedis>;
  const hasCalls = [sendCommand, connect, destroy].every((call) => typeof call === "function");
  // A pool spreads commands over connections: their order, which locks rely on, would be lost.
  return hasCalls && !("totalClients" in client);
}

/** How long a new connection may take until it can be used. */
const HANDSHAKE_LIMIT_MS = 5_000;

/** Replies come as strings, whatever types the client was told to give to its user. */
const PLAIN_TYPES = { typeMapping: {} };

/** What the client puts before the keys of its commands, though not of those that we make. */
function keyPrefixOf(client: object): string {
  const { _keyPrefix, options } = client as { _keyPrefix?: unknown; options?: object };
  return String(_keyPrefix ?? (options as { keyPrefix?: unknown } | undefined)?.keyPrefix ?? "");
}

function prefixed(
  prefix: string,
  key: string,
  command: string,
  args: readonly string[],
): readonly string[] {
  if (prefix === "" || key === "") return [command, ...args];
  const [first, count] = command.startsWith("eval") ? [2, Number(args[1])] : [0, 1];
  const isKey = (at: number): boolean => at >= first && at < first + count;
  return [command, ...args.map((arg, at) => (isKey(at) ? prefix + arg : arg))];
}

const CHANGES = ["ready", "reconnecting", "end", "error", "topology-change"];

function changesOf(client: Emitter): () => number {
  return countChanges(client, (onChange) => {
    for (const event of CHANGES) client.on(event, onChange);
  });
}

export function nodeRedisDriver(client: NodeRedis): Driver {
  if ("masters" in client) return clusterDriver(client as unknown as Cluster);
  if ("getMasterNode" in client) return sentinelDriver(client as unknown as Sentinel);
  return plainDriver(client as unknown as Plain);
}

function plainDriver(client: Plain): Driver {
  const prefix = keyPrefixOf(client);
  const { path, host = "localhost", port = 6379 } = client.options?.socket ?? {};
  return {
    isCluster: false,
    hasOneConnection: true,
    database: Number(client.options?.database ?? 0),
    address: path ?? `${host}:${port}`,
    servers: () => (path ? [] : [{ host, port }]),
    keyPrefix: prefix,
    changes: changesOf(client),
    send: (key, command, args) =>
      client.sendCommand(prefixed(prefix, key, command, args), PLAIN_TYPES),
    open: () => own(client),
  };
}

function clusterDriver(client: Cluster): Driver {
  const prefix = keyPrefixOf(client);
  const send: Driver["send"] = (key, command, args) =>
    client.sendCommand(prefix + key, false, prefixed(prefix, key, command, args), PLAIN_TYPES);
  return {
    isCluster: true,
    hasOneConnection: false,
    database: 0,
    address: null,
    servers: () =>
      client.masters.flatMap(({ host, port }) => (host && port ? [{ host, port }] : [])),
    keyPrefix: prefix,
    changes: changesOf(client),
    send,
    async open(key) {
      // The answer corrects what the client knows about the slot.
      if (key !== null) await send(key, "hdel", [key, "?"]);
      const { masters, slots } = client;
      const node =
        key === null
          ? masters[Math.floor(Math.random() * masters.length)]
          : slots[slotOf(prefix + key)]?.master;
      if (node) return await own(await client.nodeClient(node));
      throw new StoreError("The Cluster client knows no node for this yet: connect() it first.", {
        outcome: "not_applied",
      });
    },
  };
}

function sentinelDriver(client: Sentinel): Driver {
  const prefix = keyPrefixOf(client);
  return {
    isCluster: false,
    hasOneConnection: false,
    database: 0,
    address: null,
    servers: () => addressOf(lastFailure(client)),
    keyPrefix: prefix,
    changes: changesOf(client),
    send: (key, command, args) =>
      client.sendCommand(false, prefixed(prefix, key, command, args), PLAIN_TYPES),
    open: async (key) => (key === null ? listening(client) : await own(await masterOf(client))),
  };
}

/** A Sentinel client names no server; the failure of a connection names the one that failed. */
function addressOf(failure: unknown): Address[] {
  const { address: host, port } = (failure ?? {}) as { address?: unknown; port?: unknown };
  return typeof host === "string" && typeof port === "number" ? [{ host, port }] : [];
}

/**
 * The client's connection to the master. To be duplicated: a Sentinel client duplicated as a whole
 * would reconnect by itself and repeat commands, so that WAIT could follow nothing.
 */
async function masterOf(client: Sentinel): Promise<Plain> {
  return (await client._execute(false, async (master) => master)) as Plain;
}

/** Like the client's own connection (server, user, TLS, database), but for our use alone. */
async function own(client: Plain): Promise<OwnConnection> {
  // A socket of ours may be silent: WAIT takes its time, and messages are rare.
  const quiet = { reconnectStrategy: false, socketTimeout: undefined };
  const socket = { ...client.options?.socket, ...quiet };
  const connection = client.duplicate({ socket, disableOfflineQueue: false });
  const closed = ended(connection);
  const close = (): void => {
    if (connection.isOpen) connection.destroy();
  };
  // It serves the locks; alone it is no reason for the process to go on, connected or not yet.
  connection.unref();
  // The client limits only how long the socket may take, not the handshake.
  const limit = systemTimers.after(HANDSHAKE_LIMIT_MS, close);
  try {
    await connection.connect();
  } finally {
    limit.cancel();
  }
  return {
    send: (args) => connection.sendCommand(args, PLAIN_TYPES),
    subscribe: (channel, onMessage) => connection.subscribe(channel, onMessage),
    onClose: (listener) => void closed.then(listener),
    close,
  };
}

/**
 * A Sentinel client subscribes on a connection apart from its commands, and to make another client
 * takes it a third of a second: so the pushes come by the user's. A new master is an end for us.
 */
function listening(client: Sentinel): OwnConnection {
  let end = (): void => {};
  let unsubscribe = (): void => {};
  const onChange = (event: unknown): void => {
    if ((event as { type?: unknown }).type === "MASTER_CHANGE") end();
  };
  client.on("topology-change", onChange);
  return {
    send: async () => undefined,
    async subscribe(channel, onMessage) {
      const listener = (message: string): void => onMessage(message);
      unsubscribe = () => void client.unsubscribe(channel, listener).catch(() => {});
      await client.subscribe(channel, listener);
    },
    onClose(listener) {
      end = listener;
    },
    close() {
      client.off("topology-change", onChange);
      unsubscribe();
      end();
    },
  };
}

/** Resolves when the connection is over. An error is its end, for it is not to reconnect. */
function ended(connection: Emitter): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ["end", "error"]) connection.on(event, () => resolve());
  });
}
