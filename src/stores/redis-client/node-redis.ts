import { StoreError } from "../../errors/index.js";
import { systemTimers } from "../../time/timers.js";
import type { Address } from "../store-url.js";
import {
  countChanges,
  type Driver,
  type Emitter,
  lastFailure,
  type OwnConnection,
} from "./client.js";
import { slotOf } from "./cluster-slot.js";

/** The members by which a client, Cluster or Sentinel client of node-redis is recognized. */
export interface NodeRedis extends Emitter {
  readonly isOpen: boolean;
  sendCommand(...args: never[]): Promise<unknown>;
  connect(): Promise<unknown>;
  /** Since version 5. */
  destroy(): unknown;
}

/** The used members of node-redis 5 and 6. */
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
  // A pool spreads commands over connections, and locks rely on the order of commands.
  return hasCalls && !("totalClients" in client);
}

/** How long a new connection may take until it is ready. */
const HANDSHAKE_LIMIT_MS = 5_000;

/** Replies come as strings, whatever type mapping the client has. */
const PLAIN_TYPES = { typeMapping: {} };

/** The prefix of the keys of the client. `sendCommand` does not add it. */
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
  const [first, count] = command.startsWith("eval")
    ? [2, Number(args[1])]
    : [0, command === "mget" ? args.length : 1];
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
    masters: async () => [
      { address: path ?? `${host}:${port}`, send: (args) => client.sendCommand(args, PLAIN_TYPES) },
    ],
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
    masters: () =>
      Promise.all(
        client.masters.map(async (master) => {
          const node = await client.nodeClient(master);
          const sendTo = (args: readonly string[]) => node.sendCommand(args, PLAIN_TYPES);
          return { address: master.address, send: sendTo };
        }),
      ),
    async open(key) {
      // A redirection corrects the slots that the client knows.
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
    masters: async () => [
      {
        address: "the master",
        send: (args) => client.sendCommand(false, args, PLAIN_TYPES),
      },
    ],
    open: async (key) => (key === null ? listening(client) : await own(await masterOf(client))),
  };
}

/** A Sentinel client shows no address; the failure of a connection has the address that failed. */
function addressOf(failure: unknown): Address[] {
  const { address: host, port } = (failure ?? {}) as { address?: unknown; port?: unknown };
  return typeof host === "string" && typeof port === "number" ? [{ host, port }] : [];
}

/**
 * The client's connection to the master, which the store duplicates. A duplicate of the whole
 * Sentinel client would reconnect by itself and repeat commands, so that WAIT would prove nothing.
 */
async function masterOf(client: Sentinel): Promise<Plain> {
  return (await client._execute(false, async (master) => master)) as Plain;
}

/** A connection like that of the client (server, user, TLS, database), for the store alone. */
async function own(client: Plain): Promise<OwnConnection> {
  // The socket may be silent: WAIT takes long, and messages are rare.
  const quiet = { reconnectStrategy: false, socketTimeout: undefined };
  const socket = { ...client.options?.socket, ...quiet };
  const connection = client.duplicate({ socket, disableOfflineQueue: false });
  const closed = ended(connection);
  const close = (): void => {
    if (connection.isOpen) connection.destroy();
  };
  // The connection alone must not keep the process alive, not even while it connects.
  connection.unref();
  // The client limits the time of the socket only, not that of the handshake.
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
 * A Sentinel client has a connection of its own for subscriptions, and takes a third of a second to
 * make another client. So the pushes come by the client of the user. A new master counts as the end
 * of the connection.
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

/** Resolves when the connection is over. It never reconnects, so an error is its end. */
function ended(connection: Emitter): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ["end", "error"]) connection.on(event, () => resolve());
  });
}
