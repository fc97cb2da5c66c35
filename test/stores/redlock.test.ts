/**
 * The conformance kit on three and on five nodes. By default one client each; HOLDFAST_FULL=1 runs
 * every client on both.
 */
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient } from "redis";
import { createClient as createClient5 } from "redis5";
import { afterAll, beforeAll, describe } from "vitest";
import type { RedlockStoreOptions } from "../../src/stores/redlock/index.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { closeAll, startAll } from "../servers/server-process.js";
import { redlockHarness } from "./redlock-harness.js";
import { runConformance } from "./run-conformance.js";

type Client = RedlockStoreOptions["clients"][number];

/** What a test opens and has to end itself. */
interface Opened {
  readonly client: Client;
  close(): unknown;
}

type Opener = (server: RedisServer) => Opened | Promise<Opened>;

const isFull = Boolean(process.env.HOLDFAST_FULL);

function ioredis(client: Client & { disconnect(): void }): Opened {
  return { client, close: () => client.disconnect() };
}

async function nodeRedis(client: unknown): Promise<Opened> {
  const opening = client as Client & { connect(): Promise<unknown>; destroy(): unknown };
  opening.on("error", () => {});
  await opening.connect();
  return { client: opening, close: () => opening.destroy() };
}

const openers = {
  "ioredis 6": ({ port }) => ioredis(new Redis(port)),
  "ioredis 5": ({ port }) => ioredis(new Redis5(port)),
  "node-redis 6": ({ url }) => nodeRedis(createClient({ url })),
  "node-redis 5": ({ url }) => nodeRedis(createClient5({ url })),
} as const satisfies Record<string, Opener>;

const runs: readonly { nodes: number; usual: keyof typeof openers }[] = [
  { nodes: 3, usual: "ioredis 6" },
  { nodes: 5, usual: "node-redis 6" },
];

for (const { nodes, usual } of runs) {
  describe(`${nodes} nodes`, () => {
    let servers: RedisServer[];
    beforeAll(async () => {
      servers = await startAll(Array.from({ length: nodes }, () => startRedis()));
    });
    afterAll(() => closeAll(servers ?? []));

    for (const name of isFull ? (Object.keys(openers) as (typeof usual)[]) : [usual]) {
      describe(name, () => {
        let opened: readonly Opened[];
        beforeAll(async () => {
          opened = await Promise.all(servers.map((server) => openers[name](server)));
        });
        afterAll(() => {
          for (const { close } of opened ?? []) close();
        });
        const clients = () => opened.map(({ client }) => client);
        runConformance(redlockHarness(() => servers, clients));
      });
    }
  });
}
