import pg from "pg";
import postgres from "postgres";
import { expect, it } from "vitest";
import { driverOf } from "./client.js";
import { postgresStore } from "./index.js";

const url = "postgres://user:secret@10.0.0.1:5433/db";

it.each([
  ["a pool", { pool: new pg.Pool({ connectionString: url }) }],
  ["a client", { client: new pg.Client({ connectionString: url }) }],
  ["sql", { sql: postgres(url) }],
])("knows where the servers of %s are", (_, clients) => {
  expect(driverOf(clients).servers).toEqual(["10.0.0.1:5433"]);
});

it("knows all servers of sql", () => {
  const sql = postgres("postgres://user:secret@a:1,b:2/db");
  expect(driverOf({ sql }).servers).toEqual(["a:1", "b:2"]);
});

it("refuses a client that is not one, or not alone, and shows no secret", () => {
  const pool = new pg.Pool({ connectionString: url });
  const client = new pg.Client({ connectionString: url });
  const wrong: [unknown, string][] = [
    [{}, "exactly one of them"],
    [{ pool, client }, "exactly one of them"],
    [{ pool: client }, "must be one of pool and client"],
    [{ sql: pool }, "must be one of pool and client"],
    [{ pool: "postgres://user:secret@h" }, "must be one of pool and client"],
    // pg 8.6 has no `unref`.
    [{ pool: { Client: class {}, options: {}, connect() {} } }, "of pg 8.7 or later"],
    [{ client: { connectionParameters: {}, query() {} } }, "of pg 8.7 or later"],
    [{ sql: Object.assign(() => {}, { unsafe() {}, options: { host: ["h"] } }) }, "postgres 3"],
    [pool, "must be an object with the client in it"],
    [postgres(url), "must be an object with the client in it"],
    [{ pool, nameSpace: "x" }, "did you mean namespace?"],
    [{ pool, hasSynchronousStandby: "yes" }, "must be true or false"],
    [{ pool, offerMs: 1 }, "must be at least 10"],
  ];
  for (const [options, text] of wrong) {
    expect(() => postgresStore(options as never)).toThrow(text);
    expect(() => postgresStore(options as never)).not.toThrow("secret");
  }
});
