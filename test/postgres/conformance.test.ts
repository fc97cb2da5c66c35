/**
 * The conformance kit on both client libraries; the quick run has pg alone. The cases with faults
 * run on pg, and in the full run on both.
 */

import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe } from "vitest";
import { isFull, isQuick } from "../fixtures/depth.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { runConformance } from "../stores/run-conformance.js";
import { type OpenedClient, postgresHarness } from "./harness.js";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres({ settings: { max_connections: "300" } });
});
afterAll(() => server?.close());

const libraries: Record<string, (url: string) => OpenedClient> = {
  "pg 8"(url) {
    const pool = new pg.Pool({ connectionString: url });
    return { clients: { pool }, close: () => pool.end() };
  },
  "postgres 3"(url) {
    const sql = postgres(url);
    return { clients: { sql }, close: () => sql.end() };
  },
};

for (const [name, open] of Object.entries(libraries)) {
  describe.skipIf(isQuick && name !== "pg 8")(name, () => {
    const closers: (() => unknown)[] = [];
    afterAll(() => Promise.all(closers.map((close) => close())));
    const { faults, ...harness } = postgresHarness(() => server, open, closers);
    const hasFaults = faults && (isFull || name === "pg 8");
    runConformance(hasFaults ? { ...harness, faults } : harness);
  });
}
