/**
 * A role that may create objects in the database tries to have its code run with the rights of the
 * role that migrates, or of the role that locks.
 */
import type { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/index.js";
import { postgresMigration } from "../../src/stores/postgres/index.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";
import { examined } from "./examined.js";

let server: PostgresServer;
/** A separate database for each test. */
let url: string;
let databases = 0;

beforeAll(async () => {
  server = await startPostgres();
  await server.ask("create role attacker login");
  await server.ask("create role app login");
});
afterAll(() => server?.close());
beforeEach(async () => {
  databases += 1;
  await server.ask(`create database hostile_${databases}`);
  await server.ask(`grant create on database hostile_${databases} to attacker`);
  url = server.url.replace(/\/\w+$/, `/hostile_${databases}`);
});

const as = (role: string): string => url.replace(/\/\/\w+@/, `//${role}@`);

async function withClient<T>(role: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await server.client({ connectionString: as(role) });
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const run = (role: string, sql: string): Promise<Record<string, unknown>[]> =>
  withClient(role, async (client) => (await client.query(sql)).rows);

/** A function body that makes the attacker a superuser if a superuser calls it. */
const SEIZE = `begin
  if (select rolsuper from pg_roles where rolname = current_user) then
    alter role attacker superuser;
  end if;
  return false;
end`;

async function isSeized(): Promise<boolean> {
  const [row] = await server.ask("select rolsuper from pg_roles where rolname = 'attacker'");
  if (row?.rolsuper === true) await server.ask("alter role attacker nosuperuser");
  return row?.rolsuper === true;
}

/** A handoff, and a slice of the sweeper: both run SQL of the schema with literals. */
async function useLocks(role: string): Promise<void> {
  await using locks = await connect(as(role));
  const first = await locks.mutex("a").acquire();
  await using others = await connect(as(role));
  const second = others.mutex("a").acquire();
  await waitUntil(async () => (await locks.inspect("a")).waiters.length === 1, {
    what: "a waiter",
  });
  await first.release();
  await (await second).release();
  await run(role, "select holdfast.sweep_1(10)");
}

describe("a schema that another role made first", () => {
  it("is refused, so that an overload in it is never called", async () => {
    await run("attacker", "create schema holdfast");
    await run(
      "attacker",
      `create function holdfast.is_noted_1(integer) returns boolean
        language plpgsql as $$${SEIZE}$$;
      grant usage on schema holdfast to public`,
    );
    await expect(run("postgres", postgresMigration({ role: "app" }))).rejects.toMatchObject({
      code: "LF004",
      message: expect.stringContaining('The schema holdfast belongs to the role "attacker"'),
    });
    await expect(useLocks("app")).rejects.toThrow();
    expect(await isSeized()).toBe(false);
  });

  it("is refused by a store that would migrate, and the error says whose it is", async () => {
    await run("attacker", "create schema holdfast");
    await expect(connect(url)).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining('The schema holdfast belongs to the role "attacker"'),
    });
  });
});

describe("objects of another role in the schema", () => {
  const objects = [
    [
      "an overload",
      `create function holdfast.is_noted_1(integer) returns boolean
      language plpgsql as $$${SEIZE}$$`,
    ],
    ["a table", "create table holdfast.holder (a integer)"],
    ["a type", "create type holdfast.waiter as (a integer)"],
    [
      "an operator",
      `create operator holdfast.= (leftarg = text, rightarg = text,
      function = texteq)`,
    ],
  ] as const;

  it.each(objects)("are refused: %s", async (_, sql) => {
    await run("postgres", "create schema holdfast; grant all on schema holdfast to attacker");
    await run("attacker", sql);
    await run("postgres", "revoke create on schema holdfast from attacker");
    await expect(run("postgres", postgresMigration())).rejects.toMatchObject({
      code: "LF004",
      message: expect.stringMatching(
        /The role "attacker" owns holdfast\..* in the schema holdfast/,
      ),
    });
  });

  it("cannot come later: no other role may create in the schema", async () => {
    await run("postgres", "create schema holdfast; grant create on schema holdfast to attacker");
    await expect(run("postgres", postgresMigration())).rejects.toMatchObject({
      code: "LF004",
      message: expect.stringContaining('The role "attacker" may create in the schema holdfast'),
    });
    await run("postgres", "revoke create on schema holdfast from attacker");
    await run("postgres", "grant create on schema holdfast to public");
    await run("postgres", postgresMigration());
    await expect(run("attacker", "create table holdfast.mine (a int)")).rejects.toThrow();
  });
});

describe("overloads beside the functions that a statement calls", () => {
  it("in the schema holdfast are never called", async () => {
    await run("postgres", postgresMigration({ role: "app" }));
    // Made by the owner, after all checks: each call must name its function exactly.
    await run(
      "postgres",
      `create function holdfast.is_noted_1(integer) returns boolean language plpgsql
        as $$begin raise 'an overload was called'; end$$;
      create function holdfast.sweep_names_1(inout text, inout text, integer, integer)
        language plpgsql as $$begin raise 'an overload was called'; end$$`,
    );
    await useLocks("app");
  });

  it("in the schema public are never called by the store", async () => {
    await run("postgres", "grant all on schema public to attacker");
    await run(
      "attacker",
      `create function public.concat_ws(text, text, boolean, boolean, text) returns text
        language plpgsql as $$begin alter role attacker superuser; return 'UTF8 f f'; end$$;
      create function public.set_config(text, text, integer) returns text
        language plpgsql as $$begin alter role attacker superuser; return ''; end$$`,
    );
    await useLocks("postgres");
    await examined(await connect(url));
    expect(await isSeized()).toBe(false);
  });
});
