import { InvalidOptionError } from "../../errors/index.js";
import { type Address, StoreUrl, type TlsFiles } from "../store-url.js";

/** The servers to connect to, and how, independent of the client library. */
export interface RedisTarget {
  readonly kind: "plain" | "sentinel" | "cluster";
  readonly nodes: readonly Address[];
  /** The name of the master at the sentinels. */
  readonly master: string;
  readonly database: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Null: connections are not encrypted. */
  readonly tls: TlsFiles | null;
}

const PORT = 6_379;
const SENTINEL_PORT = 26_379;

/** Reads the URL of a redis or redlock store. The store knows `parameters`. */
export function readTargetUrl(url: URL, parameters: readonly string[]): StoreUrl {
  return new StoreUrl(url, {
    port: url.protocol.endsWith("+sentinel:") ? SENTINEL_PORT : PORT,
    parameters: [...parameters, "tls"],
    isSecure: isSecure(url),
  });
}

/** The servers behind one client: one server, those behind sentinels, or a Cluster. */
export async function targetOf(url: StoreUrl): Promise<RedisTarget> {
  const { protocol } = url;
  const kind = protocol.endsWith("+sentinel:")
    ? "sentinel"
    : protocol.endsWith("+cluster:")
      ? "cluster"
      : "plain";
  if (kind === "plain" && url.hosts.length > 1) {
    const rule = "has one host; redis+sentinel:, redis+cluster: and redlock: have several";
    throw new InvalidOptionError("url", protocol, rule);
  }
  const [master, ...path] = kind === "sentinel" ? url.path : ["", ...url.path];
  if (master === undefined) {
    throw new InvalidOptionError("url", protocol, "must name the master: //host:26379/master");
  }
  const database = databaseOf(protocol, path);
  if (kind === "cluster" && database !== 0) {
    throw new InvalidOptionError("url", protocol, "must name no database but 0");
  }
  return {
    kind,
    nodes: url.hosts,
    master,
    database,
    username: url.username,
    password: url.password,
    tls: await url.tls(),
  };
}

/** An unknown value must not mean plain text: the password would be sent unencrypted. */
function isSecure({ protocol, searchParams }: URL): boolean {
  const text = searchParams.get("tls") ?? "false";
  if (!/^(true|1|false|0)$/.test(text)) {
    throw new InvalidOptionError("tls", text, "must be true or false");
  }
  return /^(rediss|redlocks):$/.test(protocol) || /^[t1]/.test(text);
}

/** The number of the database, which the path of a URL ends with. */
export function databaseOf(protocol: string, [database = "0", ...more]: readonly string[]): number {
  if (/^\d+$/.test(database) && more.length === 0) return Number(database);
  throw new InvalidOptionError("url", protocol, "must end with the number of the database");
}
