import { databaseOf, type RedisTarget, readTargetUrl } from "../redis-client/redis-target.js";
import type { StoreUrl } from "../store-url.js";

/** A URL of `redlock:` or `redlocks:`: its servers and options. */
export async function readRedlockUrl<Name extends string>(
  url: URL,
  numbers: readonly Name[],
): Promise<{
  readonly targets: readonly RedisTarget[];
  readonly options: {
    readonly namespace: string;
    readonly bootstrap: "wait" | "now";
  } & { readonly [K in Name]?: number };
}> {
  const read = readTargetUrl(url, ["namespace", "bootstrap", ...numbers]);
  const options = {
    namespace: read.text("namespace") ?? "",
    // The store refuses any other word.
    bootstrap: (read.text("bootstrap") ?? "wait") as "wait" | "now",
    ...read.numbers(...numbers),
  };
  return { targets: await targetsOf(read), options };
}

/** Independent servers, with the same user, password, database and TLS for each. */
async function targetsOf(url: StoreUrl): Promise<RedisTarget[]> {
  const { username, password, path, protocol } = url;
  const access = { username, password, database: databaseOf(protocol, path), tls: await url.tls() };
  return url.hosts.map((node) => ({ kind: "plain", nodes: [node], master: "", ...access }));
}
