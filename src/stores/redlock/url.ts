import { type NodeVote, QuorumError, type StoreError } from "../../errors/index.js";
import { majorityOf, preventsMajority } from "../../rules/majority.js";
import { systemTimers, TimeLimitError, within } from "../../time/timers.js";
import type { Ioredis } from "../redis-client/ioredis.js";
import type { NodeRedis } from "../redis-client/node-redis.js";
import { CONNECT_LIMIT_MS, type OpenedClient, openClient } from "../redis-client/open-client.js";
import { databaseOf, type RedisTarget, readTargetUrl, targetOf } from "../redis-client/url.js";
import type { StoreUrl } from "../store-url.js";
import { failedVote, nodeError } from "./errors.js";

/** A URL of `redlock:`, `redlocks:`, `redlock+sentinel:` or `redlock+cluster:`. */
export async function readRedlockUrl<Text extends string, Name extends string>(
  url: URL,
  texts: readonly Text[],
  numbers: readonly Name[],
): Promise<{
  readonly targets: readonly RedisTarget[];
  readonly options: { readonly [K in Text]?: string } & { readonly [K in Name]?: number };
}> {
  const read = readTargetUrl(url, [...texts, ...numbers]);
  const given = texts.flatMap((name) => {
    const text = read.text(name);
    return text === undefined ? [] : [[name, text]];
  });
  const options = { ...Object.fromEntries(given), ...read.numbers(...numbers) };
  return { targets: await targetsOf(read), options };
}

/** One target for each server, all with the same user, password, database and TLS. */
async function targetsOf(url: StoreUrl): Promise<RedisTarget[]> {
  // The servers of a Cluster, or behind sentinels, decide as one.
  if (url.protocol.includes("+")) return [await targetOf(url)];
  const { username, password, path, protocol } = url;
  const access = { username, password, database: databaseOf(protocol, path), tls: await url.tls() };
  return url.hosts.map((node) => ({ kind: "plain", nodes: [node], master: "", ...access }));
}

export interface OpenedNodes {
  readonly clients: readonly (Ioredis | NodeRedis)[];
  readonly names: readonly string[];
  close(): Promise<unknown>;
}

interface OpenedNode extends OpenedClient {
  readonly name: string;
}

/**
 * Opens a client for each server. A server that is down does no harm: its client connects when it
 * can. Throws `QuorumError` where no further attempt can bring about a majority.
 */
export async function openNodes(targets: readonly RedisTarget[]): Promise<OpenedNodes> {
  const nodes = await Promise.all(
    targets.map(async (target) => ({
      name: nameOf(target),
      ...(await openClient(target, "redlock")),
    })),
  );
  const close = (): Promise<unknown> => Promise.all(nodes.map((node) => node.close()));
  try {
    await demandMajority(nodes);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    clients: nodes.map(({ client }) => client),
    names: nodes.map(({ name }) => name),
    close,
  };
}

function nameOf({ nodes: [node] }: RedisTarget): string {
  const { host = "", port = 0 } = node ?? {};
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Waits until a majority is connected, or every client has made its first attempt. Throws when so
 * many servers refuse for good that no majority can come.
 */
async function demandMajority(nodes: readonly OpenedNode[]): Promise<void> {
  const cannotReachMajority = (): boolean => preventsMajority(refusals.size, nodes.length);
  const refusals = new Map<string, StoreError>();
  let connected = 0;
  const enough = new Promise<void>((resolve) => {
    const attempts = nodes.map(async ({ name, connecting }) => {
      try {
        await connecting.firstAttempt;
        connected += 1;
      } catch (error) {
        const refusal = nodeError(name, error);
        if (!refusal.retryable) refusals.set(name, refusal);
      }
      if (connected >= majorityOf(nodes.length) || cannotReachMajority()) resolve();
    });
    void Promise.all(attempts).then(() => resolve());
  });
  await within(systemTimers, CONNECT_LIMIT_MS, enough).catch((error: unknown) => {
    if (!(error instanceof TimeLimitError)) throw error;
  });
  if (!cannotReachMajority()) return;
  const votes = nodes.map(({ name }): NodeVote => {
    const refusal = refusals.get(name);
    return refusal
      ? failedVote(name, refusal)
      : { node: name, vote: "time_out", detail: "no answer yet" };
  });
  throw new QuorumError(votes, "Correct the URL or the servers.", {
    outcome: "not_applied",
    retryable: false,
    store: "redlock",
    cause: [...refusals.values()][0],
  });
}
