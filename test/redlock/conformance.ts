/**
 * The conformance kit on Redlock: by default with one client, with the full run with all
 * clients.
 */

import { afterAll, beforeAll, describe } from "vitest";
import type { Harness } from "../../src/conformance/index.js";
import type { FaultProxy } from "../faults/proxy.js";
import { isFull } from "../fixtures/depth.js";
import type { Client, Opened } from "../redis/clients.js";
import { type ClientName, clientNames, openUrl } from "../redis/every-client.js";
import { startProxies } from "../redis/faults.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { closeAll, startAll } from "../servers/server-process.js";
import { redlockHarness, type Way } from "./harness.js";

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

  for (const name of isFull ? clientNames : [usual]) {
    describe(`${nodes} nodes, ${name}`, () => {
      const opened: Opened[] = [];
      const proxies: FaultProxy[] = [];
      const open = async (ports: readonly number[]): Promise<Client[]> => {
        const fresh = await Promise.all(
          ports.map((port) => openUrl[name](`redis://${way.user ?? ""}127.0.0.1:${port}`)),
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
            const fresh = await startProxies(servers);
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
