/**
 * The conformance kit on Redlock: by default with one client, with HOLDFAST_FULL=1 with all
 * clients.
 */
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { Redis as Valkey } from "iovalkey";
import { createClient } from "redis";
import { createClient as createClient5 } from "redis5";
import { afterAll, beforeAll, describe } from "vitest";
import type { Harness } from "../../src/conformance/index.js";
import type { RedlockStoreOptions } from "../../src/stores/redlock/index.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { closeAll, startAll } from "../servers/server-process.js";
import { redlockHarness, type Way } from "./redlock-harness.js";

type Client = NonNullable<RedlockStoreOptions["clients"]>[number];

/** A client that the test has to close. */
interface Opened {
  readonly client: Client;
  close(): unknown;
}

type Opener = (url: string) => Opened | Promise<Opened>;

const isFull = Boolean(process.env.HOLDFAST_FULL);

function ioredis(client: Client & { disconnect(): void }): Opened {
  client.on("error", () => {});
  return { client, close: () => client.disconnect() };
}

async function nodeRedis(client: unknown): Promise<Opened> {
  const opening = client as Client & { connect(): Promise<unknown>; destroy(): unknown };
  opening.on("error", () => {});
  await opening.connect();
  return { client: opening, close: () => opening.destroy() };
}

type ClientName = "ioredis 6" | "ioredis 5" | "iovalkey" | "node-redis 6" | "node-redis 5";

const openers: Record<ClientName, Opener> = {
  "ioredis 6": (url) => ioredis(new Redis(url)),
  "ioredis 5": (url) => ioredis(new Redis5(url)),
  iovalkey: (url) => ioredis(new Valkey(url)),
  "node-redis 6": (url) => nodeRedis(createClient({ url })),
  "node-redis 5": (url) => nodeRedis(createClient5({ url })),
};

/** Registers a run of the kit for each client, on that many nodes. */
export function forEachClient(
  nodes: number,
  usual: ClientName,
  run: (harness: Harness, client: () => Client, name: ClientName) => void,
  { start = startRedis, ...way }: Partial<Way> & { start?(): Promise<RedisServer> } = {},
): void {
  let servers: RedisServer[];
  beforeAll(async () => {
    servers = await startAll(Array.from({ length: nodes }, () => start()));
  });
  afterAll(() => closeAll(servers ?? []));

  for (const name of isFull ? (Object.keys(openers) as ClientName[]) : [usual]) {
    describe(`${nodes} nodes, ${name}`, () => {
      const opened: Opened[] = [];
      const proxies: FaultProxy[] = [];
      const open = async (ports: readonly number[]): Promise<Client[]> => {
        const fresh = await Promise.all(
          ports.map((port) => openers[name](`redis://${way.user ?? ""}127.0.0.1:${port}`)),
        );
        opened.push(...fresh);
        return fresh.map(({ client }) => client);
      };
      let clients: Client[];
      beforeAll(async () => {
        clients = await open(servers.map(({ port }) => port));
      });
      afterAll(async () => {
        for (const { close } of opened) close();
        await closeAll(proxies);
      });
      run(
        redlockHarness(
          nodes,
          () => servers,
          () => clients,
          async () => {
            const targets = servers.map(
              ({ port }) => ({ targetPort: port, framing: "resp" }) as const,
            );
            const fresh = await startAll(targets.map((target) => startProxy(target)));
            proxies.push(...fresh);
            return { proxies: fresh, clients: await open(fresh.map(({ port }) => port)) };
          },
          way,
        ),
        () => clients[0] as Client,
        name,
      );
    });
  }
}
