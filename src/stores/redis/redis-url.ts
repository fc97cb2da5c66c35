import { InvalidOptionError } from "../../errors.js";
import { databaseOf, type RedisTarget, readTargetUrl } from "../redis-client/redis-target.js";
import type { StoreUrl } from "../store-url.js";

/** A URL of `redis:`, `rediss:`, `redis+sentinel:` or `redis+cluster:`: its servers and options. */
export async function readRedisUrl<Name extends string>(
  url: URL,
  numbers: readonly Name[],
): Promise<{
  readonly target: RedisTarget;
  readonly options: { readonly namespace: string } & { readonly [K in Name]?: number };
}> {
  const read = readTargetUrl(url, ["namespace", ...numbers]);
  const options = { namespace: read.text("namespace") ?? "", ...read.numbers(...numbers) };
  return { target: await targetOf(read), options };
}

async function targetOf(url: StoreUrl): Promise<RedisTarget> {
  const { protocol } = url;
  const kind =
    protocol === "redis+sentinel:"
      ? "sentinel"
      : protocol === "redis+cluster:"
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
