/**
 * The conformance kit on both client libraries. By default the cases with faults run on pg alone;
 * HOLDFAST_FULL=1 runs them on both.
 */
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe } from "vitest";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { type OpenedClient, postgresHarness } from "./postgres-harness.js";
import { runConformance } from "./run-conformance.js";

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

const isFull = Boolean(process.env.HOLDFAST_FULL);

for (const [name, open] of Object.entries(libraries)) {
  describe(name, () => {
    const closers: (() => unknown)[] = [];
    afterAll(() => Promise.all(closers.map((close) => close())));
    const { faults, ...harness } = postgresHarness(() => server, open, closers);
    const hasFaults = faults && (isFull || name === "pg 8");
    runConformance(hasFaults ? { ...harness, faults } : harness);
  });
}
