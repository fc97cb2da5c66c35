/**
 * A role that may create objects in the database tries to have its code run with the rights of the
 * role that migrates, or of the role that locks.
 */
import type { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/index.js";
import { postgresMigration } from "../../src/stores/postgres/index.js";
import { Workshop } from "../cli/command-line.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";
import { examined } from "../stores/examined.js";
import { untilWaiting } from "../stores/trial.js";

let server: PostgresServer;
/** A separate database for each test. */
let database: string;
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
  database = `hostile_${databases}`;
  await server.ask(`create database ${database}`);
  await server.ask(`grant create on database ${database} to attacker`);
  url = server.url.replace(/\/\w+$/, `/${database}`);
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
  await untilWaiting(locks, "a");
  await first.release();
  await (await second).release();
  await run(role, "select holdfast.sweep_3(10)");
}

describe("a schema that another role made first", () => {
  it("is refused, so that an overload in it is never called", async () => {
    await run("attacker", "create schema holdfast");
    await run(
      "attacker",
      `create function holdfast.is_noted_3(integer) returns boolean
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

describe("a migration that is made to wait", () => {
  it("sees a schema that another role makes meanwhile, in every isolation level", async () => {
    await run(
      "postgres",
      `alter database ${database} set default_transaction_isolation to 'serializable'`,
    );
    await withClient("attacker", async (attacker) => {
      await attacker.query("select pg_advisory_lock(7525352680829580148)");
      const migrating = run("postgres", postgresMigration({ role: "app" }));
      migrating.catch(() => {});
      const isWaiting = "select 1 from pg_stat_activity where wait_event = 'advisory'";
      await waitUntil(async () => (await server.ask(isWaiting)).length === 1, {
        what: "the migration waits",
      });
      // The owner of a schema may drop what others make in it.
      await attacker.query("create schema holdfast; revoke all on schema holdfast from attacker");
      await attacker.query("select pg_advisory_unlock_all()");
      await expect(migrating).rejects.toMatchObject({ code: "LF004" });
    });
  });
});

describe("triggers of another role on the tables", () => {
  /** A trigger runs with the rights of the function that changes the table. */
  const TRIGGER = `create schema mine;
    create function mine.seize() returns trigger language plpgsql
      as $$${SEIZE.replace("return false", "return new")}$$;
    create trigger seize before update on holdfast.name
      for each row execute function mine.seize()`;

  it.each(["attacker", "public"])("cannot be made by default privileges of %s", async (role) => {
    await run("postgres", `alter default privileges grant all on tables to ${role}`);
    await run("postgres", postgresMigration({ role: "attacker" }));
    await expect(run("attacker", TRIGGER)).rejects.toMatchObject({ code: "42501" });
    await useLocks("attacker");
    expect(await isSeized()).toBe(false);
  });

  it("are refused, and the right to make them is taken away", async () => {
    await run("postgres", postgresMigration({ role: "attacker" }));
    await run("postgres", "grant trigger on holdfast.name to attacker with grant option");
    await run("attacker", "grant trigger on holdfast.name to app");
    await run("attacker", TRIGGER);
    await expect(run("postgres", postgresMigration())).rejects.toMatchObject({
      code: "LF004",
      message: expect.stringContaining(
        'The role "attacker" owns the trigger seize on holdfast.name',
      ),
    });
    await run("postgres", "drop trigger seize on holdfast.name");
    await run("postgres", postgresMigration());
    const rights = `select has_table_privilege('attacker', 'holdfast.name', 'trigger')
      or has_table_privilege('app', 'holdfast.name', 'trigger') as is_left`;
    expect(await run("postgres", rights)).toEqual([{ is_left: false }]);
  });
});

describe("objects of another role in the schema", () => {
  const objects = [
    [
      "an overload",
      `create function holdfast.is_noted_3(integer) returns boolean
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
      `create function holdfast.is_noted_3(integer) returns boolean language plpgsql
        as $$begin raise 'an overload was called'; end$$;
      create function holdfast.sweep_names_3(inout text, inout text, integer, integer)
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

  it("on a path that the owner of the database has set are never called", async () => {
    await server.ask(`alter database ${database} owner to attacker`);
    const body = `language plpgsql set search_path = pg_catalog as $$${SEIZE}$$`;
    const passes = body.replace("return false", "return true");
    await run(
      "attacker",
      `create schema mine;
      alter database ${database} set search_path = mine, pg_catalog;
      create function mine.same(int, int) returns boolean ${body};
      create operator mine.= (leftarg = int, rightarg = int, function = mine.same);
      create operator mine.>= (leftarg = int, rightarg = int, function = mine.same);
      create function mine.equal(oid, oid) returns boolean ${body};
      create operator mine.= (leftarg = oid, rightarg = oid, function = mine.equal);
      create function mine.match(name, name) returns boolean ${body};
      create operator mine.= (leftarg = name, rightarg = name, function = mine.match);
      create function mine.accept(anyelement) returns boolean ${passes};
      create domain mine.text as pg_catalog.text check (mine.accept(value));
      create domain mine.float8 as pg_catalog.float8 check (mine.accept(value))`,
    );
    await using shop = new Workshop();
    const { code } = await shop.run(["migrate", "--apply", "--store", url]);
    expect({ code, isSeized: await isSeized() }).toEqual({ code: 0, isSeized: false });
    await useLocks("postgres");
    await examined(await connect(url));
    expect(await isSeized()).toBe(false);
    await run("postgres", "drop schema holdfast cascade");
    // The first call of a store makes the schema.
    await useLocks("postgres");
    expect(await isSeized()).toBe(false);
  });
});
