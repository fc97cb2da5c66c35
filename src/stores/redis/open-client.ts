import { InvalidOptionError, StoreError } from "../../errors.js";
import { systemTimers, TimeLimitError, within } from "../../time/timers.js";
import { storeError } from "./failure.js";
import { DISCONNECT_TIMEOUT_MS, type Ioredis, isIoredis } from "./ioredis.js";
import type { NodeRedis } from "./node-redis.js";

export interface OpenedClient {
  readonly client: Ioredis | NodeRedis;
  close(): Promise<void>;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** What a URL says, in nobody's terms. */
interface Target {
  readonly kind: "plain" | "sentinel" | "cluster";
  readonly nodes: readonly Address[];
  readonly master: string;
  readonly database: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly tls: boolean;
}

/** A client that finds no server tries again for as long as it is let. */
const CONNECT_LIMIT_MS = 5_000;

type Constructor = new (...args: unknown[]) => unknown;

/**
 * Opens a client of our own with whichever library is installed. Its connections do not keep the
 * process alive: a held lease is no reason to go on, and an awaited one has its timers.
 */
export async function openClient(
  url: URL,
  /** `"later"`: it may be used at once, and connects when it can. Default: when it is connected. */
  connects: "first" | "later" = "first",
): Promise<OpenedClient> {
  const target = parse(url);
  // Bundlers accept a missing module only where its failure is handled right here.
  const ioredis = (await import("ioredis" as string).catch(() => null)) as IoredisModule | null;
  if (ioredis) return await openIoredis(ioredis, target, connects);
  const redis = (await import("redis" as string).catch(() => null)) as RedisModule | null;
  if (redis) return await openNodeRedis(redis, target, connects);
  throw new InvalidOptionError("url", url.protocol, "needs the package ioredis or redis installed");
}

function parse(url: URL): Target {
  const kind = url.protocol.includes("sentinel")
    ? "sentinel"
    : url.protocol.includes("cluster")
      ? "cluster"
      : "plain";
  const usual = kind === "sentinel" ? 26_379 : 6_379;
  const path = url.pathname.split("/").filter((part) => part !== "");
  const master = kind === "sentinel" ? path.shift() : "";
  const database = Number(path.shift() ?? 0);
  if (master === undefined) {
    throw new InvalidOptionError("url", url.protocol, "must name the master: //host:26379/master");
  }
  if (!Number.isInteger(database)) {
    throw new InvalidOptionError("url", url.protocol, "must end with the number of the database");
  }
  const others = url.searchParams.getAll("node").map((text) => address(text, usual));
  const first = { host: host(url.hostname), port: Number(url.port || usual) };
  return {
    kind,
    nodes: [first, ...others],
    master,
    database,
    username: decodeURIComponent(url.username) || undefined,
    password: decodeURIComponent(url.password) || undefined,
    tls: url.protocol === "rediss:" || url.searchParams.get("tls") === "true",
  };
}

function address(text: string, usualPort: number): Address {
  const [, name = "", port] = /^(.*?)(?::(\d+))?$/.exec(text) ?? [];
  return { host: host(name), port: Number(port ?? usualPort) };
}

/** A URL keeps the brackets of an IPv6 address, sockets do not want them. */
function host(name: string): string {
  return name.replace(/^\[|\]$/g, "") || "127.0.0.1";
}

interface IoredisModule {
  readonly Redis: Constructor;
  readonly Cluster: Constructor;
}

async function openIoredis(
  module: IoredisModule,
  target: Target,
  connects: "first" | "later",
): Promise<OpenedClient> {
  const { kind, nodes, master, database: db, username, password, tls } = target;
  const disconnectTimeout = DISCONNECT_TIMEOUT_MS;
  const access = { username, password, disconnectTimeout, ...(tls ? { tls: {} } : {}) };
  const client =
    kind === "cluster"
      ? new module.Cluster(nodes, { redisOptions: access })
      : kind === "sentinel"
        ? new module.Redis({ sentinels: nodes, name: master, db, ...access })
        : new module.Redis({ ...nodes[0], db, ...access });
  if (!isIoredis(client)) throw unusable("ioredis");
  const unref = (connection: unknown): void => {
    const { stream } = connection as { stream?: { unref?(): unknown } };
    stream?.unref?.();
  };
  client.on("connect", () => unref(client));
  client.on("+node", (node) => (node as Ioredis).on("connect", () => unref(node)));
  const opened = client as unknown as { disconnect(): void };
  const close = async (): Promise<void> => opened.disconnect();
  const connected = new Promise<void>((resolve) => client.on("ready", () => resolve()));
  await settle({ client, close }, connected, nodes, connects);
  return { client, close };
}

interface RedisModule {
  createClient(options: object): Opening;
  createCluster(options: object): Opening;
  createSentinel(options: object): Opening;
}

type Opening = NodeRedis & {
  destroy(): unknown;
  unref?(): void;
  readonly masters?: readonly { readonly client?: { unref(): void } }[];
};

async function openNodeRedis(
  module: RedisModule,
  target: Target,
  connects: "first" | "later",
): Promise<OpenedClient> {
  const { kind, nodes, master, database, username, password, tls } = target;
  const access = { ...(username ? { username } : {}), ...(password ? { password } : {}) };
  const socket = tls ? { tls: true } : {};
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
            nodeClientOptions: options,
          })
        : module.createClient({ ...options, socket: { ...nodes[0], ...socket } });
  const close = async (): Promise<void> => void (await client.destroy());
  await settle({ client, close }, client.connect(), nodes, connects);
  client.unref?.();
  for (const node of client.masters ?? []) node.client?.unref();
  return { client, close };
}

/** Where it has to be connected first: says why it is not, and ends what would go on for ever. */
async function settle(
  { client, close }: OpenedClient,
  connected: Promise<unknown>,
  nodes: readonly Address[],
  connects: "first" | "later",
): Promise<void> {
  let trouble: unknown;
  const refused = new Promise<never>((_, reject) => {
    client.on("error", (error) => {
      trouble = error;
      if (!storeError(error).retryable) reject(error);
    });
  });
  const settled = Promise.race([connected, refused]);
  if (connects === "later") {
    // The calls themselves tell what is wrong.
    settled.catch(() => {});
    return;
  }
  try {
    await within(systemTimers, CONNECT_LIMIT_MS, settled);
  } catch (cause) {
    await close().catch(() => {});
    throw cause instanceof TimeLimitError
      ? unreachable(nodes, trouble ?? cause)
      : storeError(cause);
  }
}

function unreachable(nodes: readonly Address[], cause: unknown): StoreError {
  const places = nodes.map(({ host: name, port }) => `${name}:${port}`).join(", ");
  const why = cause instanceof Error && cause.message ? ` (${cause.message})` : "";
  const limit = `could not connect within ${CONNECT_LIMIT_MS} ms`;
  const text = `No Redis answers at ${places}: ${limit}${why}.`;
  return new StoreError(text, { outcome: "not_applied", store: "redis", cause });
}

function unusable(library: string): StoreError {
  return new StoreError(`The installed ${library} is not one that is supported: 5 or 6.`, {
    outcome: "not_applied",
    retryable: false,
  });
}
