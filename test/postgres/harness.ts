import type { Harness } from "../../src/conformance/index.js";
import { executeStatement } from "../../src/stores/postgres/codec.js";
import { type PostgresStoreOptions, postgresStore } from "../../src/stores/postgres/index.js";
import { fromStored } from "../../src/stores/postgres/stored-text.js";
import type { ProxiedRequest } from "../faults/framing.js";
import { holdRequest } from "../faults/late-copy.js";
import { loseReply } from "../faults/message-loss.js";
import { nextPush } from "../faults/next-push.js";
import { startProxy } from "../faults/proxy.js";
import type { PostgresServer } from "../servers/postgres.js";

/** The tables with a row for each part of a name that is in use. */
const TABLES = ["holder", "waiter", "client", "tombstone"];
export type Operation = "acquire" | "renew" | "release" | "confirm";

/** Matches statements with a command of this kind. */
export function carries(operation: Operation): (request: ProxiedRequest) => boolean {
  const command = new RegExp(`^\\{(".*",)?"\\(${operation},`);
  return ({ args }) => args.some((value) => command.test(value));
}

/** A client at a port, and how to close it. */
export interface OpenedClient {
  readonly clients: Pick<PostgresStoreOptions, "pool" | "client" | "sql">;
  close(): unknown;
}

/** `server` is called late: it starts after the cases are registered. */
export function postgresHarness(
  server: () => PostgresServer,
  open: (url: string) => OpenedClient,
  closers: (() => unknown)[],
): Harness {
  const opened = (port: number): OpenedClient["clients"] => {
    const fresh = open(urlAt(port));
    closers.push(() => fresh.close());
    return fresh.clients;
  };
  let shared: OpenedClient["clients"] | undefined;
  return {
    traits: {
      scope: "network",
      modes: ["exclusive", "shared"],
      fifo: true,
      tokenSpan: true,
      transferable: true,
      marks: true,
      ordersReleases: true,
      minTtlMs: 50,
    },
    async open(namespace) {
      shared ??= opened(server().port);
      return postgresStore({ ...shared, namespace });
    },
    child: {
      module: new URL("../stores/child.mjs", import.meta.url),
      argument: (namespace) => `${urlAt(server().port)}?namespace=${namespace}`,
    },
    faults: {
      kinds: ["loseReply", "keepBack", "dropPush", "cut", "heal"],
      async open(namespace) {
        const proxy = await startProxy({ targetPort: server().port, framing: "postgres" });
        closers.push(() => proxy.close());
        // The store sends a message to itself when it listens.
        const listening = nextPush(proxy, { kind: "message" }, "pass");
        const store = postgresStore({ ...opened(proxy.port), namespace });
        return {
          store,
          loseReply: (to) => loseReply(proxy, { match: carries(to) }),
          keepBack(command) {
            const { caught, deliver } = holdRequest(proxy, {
              match: carries(command),
              resets: true,
            });
            return { struck: caught, deliver };
          },
          async dropPush() {
            await listening;
            return { struck: nextPush(proxy, { kind: "message" }, "omit") };
          },
          cut: () => proxy.cut(),
          heal: () => proxy.heal(),
        };
      },
    },
    async wipe(namespace) {
      const parts = ["name", ...TABLES].map(
        (table) => `of_${table} as (delete from holdfast.${table} where namespace = $1)`,
      );
      await server().ask(`with ${parts.join(", ")} select`, [namespace]);
    },
    leftovers: (namespace) => leftovers(server(), namespace),
  };
}

/** The names in use. A name that is free keeps its row, with the last token. */
export async function leftovers(server: PostgresServer, namespace: string): Promise<string[]> {
  const named = await server.ask("select key from holdfast.name where namespace = $1", [namespace]);
  // A name drops expired entries when it is inspected.
  const looks = named.map(
    ({ key }) => ({ type: "inspect", key: fromStored(String(key)) }) as const,
  );
  const { text, values } = executeStatement(namespace, looks);
  await server.ask(text, values);
  const used = "(lease).owner is not null or shared > 0 or waiting > 0 or mark_until is not null";
  const parts = [
    `select 'name ' || key as line from holdfast.name where namespace = $1 and (${used})`,
    ...TABLES.map(
      (table) => `select '${table} ' || key as line from holdfast.${table} where namespace = $1`,
    ),
  ];
  const rows = await server.ask(parts.join(" union all "), [namespace]);
  return rows.map(({ line }) => String(line));
}

function urlAt(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}
