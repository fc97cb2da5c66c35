import { InvalidOptionError, StoreError } from "../../errors/index.js";
import { systemTimers, TimeLimitError, within } from "../../time/timers.js";
import { importIoredis, importIovalkey, importRedis } from "../peers.js";
import type { Address, TlsFiles } from "../store-url.js";
import { unreachable } from "../unreachable.js";
import type { Emitter } from "./client.js";
import { saidBy, storeError } from "./errors.js";
import { DISCONNECT_TIMEOUT_MS, type Ioredis, isIoredis } from "./ioredis.js";
import type { NodeRedis } from "./node-redis.js";
import { SUPPORTED_CLIENTS } from "./supported-clients.js";
import type { RedisTarget } from "./url.js";

export interface OpenedClient {
  readonly client: Ioredis | NodeRedis;
  readonly connecting: Connecting;
  close(): Promise<void>;
}

/** A server refuses the certificate of its client only after the client is connected. */
const QUIET_MS = 1_000;
/** How long a client may take to connect. */
export const CONNECT_LIMIT_MS = 5_000;

type Constructor = new (...args: unknown[]) => unknown;

/**
 * Opens a client with the library that is installed. The client may be used at once, and connects
 * when it can. Its connections do not keep the process alive: a held lease does not either, and an
 * awaited lease has its timers.
 */
export async function openClient(target: RedisTarget, store: string): Promise<OpenedClient> {
  const ioredis = await importIoredis<IoredisModule>();
  if (ioredis && isSupportedIoredis(ioredis)) return openIoredis(ioredis, target, store);
  const redis = await importRedis<RedisModule>();
  if (redis && isSupportedNodeRedis(redis)) return openNodeRedis(redis, target, store);
  const iovalkey = await importIovalkey<IoredisModule>();
  if (iovalkey) return openIoredis(iovalkey, target, store);
  throw unusable([...(ioredis ? ["ioredis"] : []), ...(redis ? ["redis"] : [])]);
}

function unusable(installed: readonly string[]): InvalidOptionError {
  const found = installed.length > 0 && `; the installed ${installed.join(" and ")} cannot be used`;
  const rule = `needs ${SUPPORTED_CLIENTS}: npm install ioredis@6${found || ""}`;
  return new InvalidOptionError("url", "redis", rule);
}

/**
 * A project may have an old version of a client library for another purpose. ioredis up to version
 * 3 exports the client itself.
 */
function isSupportedIoredis(module: Partial<IoredisModule>): boolean {
  const { default: fallback, Redis = fallback } = module;
  return Redis !== undefined && "createScanStream" in Redis.prototype;
}

function isSupportedNodeRedis(module: RedisModule): boolean {
  return typeof module.createSentinel === "function";
}

/** The same, but connected. Where that fails, the client is closed, and the error says why. */
export async function openConnectedClient(
  target: RedisTarget,
  store: string,
): Promise<OpenedClient> {
  const opened = await openClient(target, store);
  const { connecting, close } = opened;
  try {
    await within(systemTimers, CONNECT_LIMIT_MS, connecting.connected);
    return opened;
  } catch (error) {
    await close().catch(() => {});
    if (!(error instanceof TimeLimitError)) throw error;
    // A direct connection shows more than a client that reports "all failed".
    throw notConnected(target, store, (await unreachable(target.nodes)) ?? connecting.trouble);
  }
}

/** Early releases of version 5 export the plain client only as their default. */
interface IoredisModule {
  readonly Redis?: Constructor;
  readonly default: Constructor;
  readonly Cluster: Constructor;
}

function openIoredis(
  { default: fallback, Redis = fallback, Cluster }: IoredisModule,
  target: RedisTarget,
  store: string,
): OpenedClient {
  const { kind, nodes, master, database: db, username, password, tls } = target;
  const disconnectTimeout = DISCONNECT_TIMEOUT_MS;
  const access = { username, password, disconnectTimeout, ...(tls ? { tls } : {}) };
  const sentinels = { sentinels: nodes, name: master, enableTLSForSentinelMode: tls !== null };
  const client =
    kind === "cluster"
      ? new Cluster(nodes, { redisOptions: access })
      : kind === "sentinel"
        ? new Redis({ ...sentinels, db, ...access, ...(tls ? { sentinelTLS: tls } : {}) })
        : new Redis({ ...nodes[0], db, ...access });
  if (!isIoredis(client)) throw unusable(["ioredis"]);
  const unref = (connection: unknown): void => {
    const { stream } = connection as { stream?: { unref?(): unknown } };
    stream?.unref?.();
  };
  client.on("connect", () => unref(client));
  client.on("+node", (node) => (node as Ioredis).on("connect", () => unref(node)));
  const ready = new Promise<void>((resolve) => client.on("ready", () => resolve()));
  const opened = client as unknown as { disconnect(): void };
  const close = async (): Promise<void> => opened.disconnect();
  return {
    client,
    connecting: new Connecting(store, client, ready, () => troubleOf(target)),
    close,
  };
}

interface RedisModule {
  createClient(options: object): Opening;
  createCluster(options: object): Opening;
  createSentinel(options: object): Opening;
}

type Opening = NodeRedis & {
  unref?(): void;
  readonly masters?: readonly { readonly client?: { unref(): void } }[];
};

function openNodeRedis(module: RedisModule, target: RedisTarget, store: string): OpenedClient {
  const { kind, nodes, master, database, username, password } = target;
  const access = { ...(username ? { username } : {}), ...(password ? { password } : {}) };
  const socket = socketOf(target.tls);
  const options = { ...access, database, socket };
  const client =
    kind === "cluster"
      ? module.createCluster({
          rootNodes: nodes.map((node) => ({ socket: { ...node, ...socket } })),
          defaults: { ...access, socket },
        })
      : kind === "sentinel"
        ? module.createSentinel({
            name: master,
            sentinelRootNodes: nodes,
            sentinelClientOptions: { socket },
            nodeClientOptions: options,
          })
        : module.createClient({ ...options, socket: { ...nodes[0], ...socket } });
  const close = async (): Promise<void> => void (await client.destroy());
  client.unref?.();
  // `Connecting` adds its listeners before the first attempt begins.
  const ready = Promise.resolve().then(async () => {
    await client.connect();
    for (const node of client.masters ?? []) node.client?.unref();
  });
  return {
    client,
    connecting: new Connecting(store, client, ready, () => troubleOf(target)),
    close,
  };
}

/** Why there is no secure connection to any server; null where there is one. */
async function troubleOf({ nodes, tls }: RedisTarget): Promise<unknown> {
  if (!tls) return null;
  const troubles = await Promise.all(nodes.map((node) => tlsTrouble(node, tls)));
  return troubles.includes(null) ? null : troubles[0];
}

function socketOf(tls: TlsFiles | null): object {
  return tls ? { tls: true, ...tls } : {};
}

function notConnected({ nodes, tls }: RedisTarget, store: string, cause: unknown): StoreError {
  const places = nodes.map(({ host: name, port }) => `${name}:${port}`).join(", ");
  const said = cause instanceof Error ? saidBy(cause) : "";
  const why = said && ` (${said})`;
  const limit = `could not connect within ${CONNECT_LIMIT_MS} ms`;
  // A port without TLS stays silent, or closes the connection.
  const isMute = said === "" || said.includes("before secure TLS connection");
  const question = tls && isMute ? " Is TLS spoken there?" : "";
  const text = `No Redis answers at ${places}: ${limit}${why}.${question}`;
  return new StoreError(text, { outcome: "not_applied", store, cause });
}

/**
 * Why there is no secure connection to a server; null where there is one. Clients of Redis may lose
 * the cause: their first command meets a closed connection before they read the alert, and ioredis
 * does not report the failures of sentinels and of nodes of a Cluster.
 */
function tlsTrouble(server: Address, tls: TlsFiles): Promise<Error | null> {
  return new Promise((resolve) => {
    const { connect } = process.getBuiltinModule("node:tls");
    const socket = connect({ ...server, ...tls, timeout: QUIET_MS });
    socket.once("error", resolve);
    socket.once("close", () => resolve(null));
    for (const event of ["timeout", "data"]) socket.once(event, () => socket.destroy());
    socket.unref();
  });
}

/** The attempts of a client to connect. The client repeats them until it succeeds or is closed. */
export class Connecting {
  /** Resolves when the client is connected; rejects with the failure of the first attempt. */
  readonly firstAttempt: Promise<unknown>;
  /** Resolves when the client is connected; rejects where no further attempt can help. */
  readonly connected: Promise<unknown>;
  /** The failure of the last attempt. */
  trouble: unknown;

  /** `diagnose` looks for the cause of a failure where the client reports only its effect. */
  constructor(
    store: string,
    client: Pick<Emitter, "on">,
    ready: Promise<unknown>,
    diagnose: () => Promise<unknown>,
  ) {
    let onFailure = (_failure: StoreError): void => {};
    let onRefusal = (_failure: StoreError): void => {};
    const failed = new Promise<never>((_, reject) => {
      onFailure = reject;
    });
    const refused = new Promise<never>((_, reject) => {
      onRefusal = reject;
    });
    let isDiagnosed = false;
    const settle = async (error: unknown): Promise<void> => {
      let failure = storeError(error, store);
      if (failure.retryable && !isDiagnosed) {
        isDiagnosed = true;
        const cause = await diagnose();
        if (cause) failure = storeError(cause, store);
      }
      onFailure(failure);
      if (!failure.retryable) onRefusal(failure);
    };
    client.on("error", (error) => {
      this.trouble = error;
      void settle(error);
    });
    const done = ready.then(
      () => {
        isDiagnosed = true;
      },
      (cause: unknown) => Promise.reject(storeError(cause, store)),
    );
    this.firstAttempt = Promise.race([done, failed]);
    this.connected = Promise.race([done, refused]);
    for (const promise of [this.firstAttempt, this.connected]) promise.catch(() => {});
  }
}
