import { type RedisTarget, readTargetUrl, targetOf } from "../redis-client/url.js";

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
