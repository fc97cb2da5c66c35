/** The set-up of the schema in Postgres: by the store, by the command, by roles with few rights. */
import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connect, type Holdfast } from "../../src/index.js";
import { postgresMigration } from "../../src/stores/postgres/index.js";
import { setUp } from "../../src/stores/postgres/migration.js";
import { Workshop } from "../cli/command-line.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";

let server: PostgresServer;
/** A database of its own for each test. */
let url: string;
let databases = 0;

beforeAll(async () => {
  server = await startPostgres();
  await server.ask("create role app login");
});
afterAll(() => server?.close());
beforeEach(async () => {
  databases += 1;
  await server.ask(`create database test_${databases}`);
  url = server.url.replace(/\/\w+$/, `/test_${databases}`);
});

/** The same database as another role. */
const as = (role: string): string => url.replace(/\/\/\w+@/, `//${role}@`);

async function ask(sql: string): Promise<Record<string, unknown>[]> {
  const client = await server.client({ connectionString: url });
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Acquires and releases by each kind of lock, waits once, and lists. */
async function useAll(locks: Holdfast): Promise<void> {
  const first = await locks.mutex("a").acquire();
  const second = locks.mutex("a").acquire();
  const names: string[] = [];
  for await (const { name } of locks.list()) names.push(name);
  expect(names).toEqual(["a"]);
  await first.release();
  await locks.readWrite("b").read.run(async () => {});
  await locks.once("c", async () => {}, { keepMs: 1_000 });
  const { token } = await second;
  expect(await locks.revoke("a", { token, reason: "test" })).toBe(true);
}

async function objects(): Promise<unknown> {
  const [row] = await ask(
    "select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace " +
      "where nspname = 'holdfast'",
  );
  return row?.count;
}

describe("the first call of a store", () => {
  it("makes the schema where the role may", async () => {
    await using locks = await connect(url);
    await locks.mutex("x").run(async () => {});
    expect(await ask("select version from holdfast.server")).toEqual([{ version: 3 }]);
  });

  it.each([
    [0, 3],
    [4, 4],
  ])("finds version %i, and a migration leaves version %i", async (found, left) => {
    await ask(postgresMigration());
    await ask(`update holdfast.server set version = ${found}`);
    await ask(postgresMigration());
    expect(await ask("select version from holdfast.server")).toEqual([{ version: left }]);
  });

  it("makes it once, however many processes begin together", async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => connect(url)));
    await Promise.all(all.map((locks) => locks.mutex("x").run(async () => {})));
    await Promise.all(all.map((locks) => locks.close()));
  });

  it("says what to run where the role may not", async () => {
    await expect(connect(as("app"))).rejects.toMatchObject({
      code: "HF_STORE",
      retryable: false,
      message: expect.stringContaining("holdfast migrate --store postgres://… --apply"),
    });
    expect(await objects()).toBe("0");
  });

  it("refuses a database that cannot store every name", async () => {
    const how = "encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0";
    await server.ask(`create database latin ${how}`);
    await expect(connect(url.replace(/\w+$/, "latin"))).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining("the encoding LATIN1"),
    });
  });

  it("says so where the schema is there, and the role has no rights on it", async () => {
    await ask(postgresMigration());
    await expect(connect(as("app"))).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining("the role lacks rights"),
    });
  });

  it.each([
    ["alter table holdfast.name drop column place", "a column of a table of the schema holdfast"],
    ["drop table holdfast.waiter cascade", "a table of the schema holdfast is missing: run holdf"],
  ])("says at once what is wrong after %s", async (change, what) => {
    await ask(postgresMigration());
    await ask(change);
    await using locks = await connect(url);
    await expect(locks.mutex("x").acquire()).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining(`Lock "x": Postgres refused: ${what}`),
    });
  });

  it("says when it connects that a type is missing", async () => {
    await ask(postgresMigration());
    await ask("alter type holdfast.lease rename to moved");
    await expect(connect(url)).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining("Postgres refused: a type of the schema holdfast is miss"),
    });
  });

  it("refuses a newer schema without its own functions, and leaves it as it is", async () => {
    await ask("create schema holdfast");
    await ask(
      "create function holdfast.execute_4(text, text[]) returns text language sql as 'select null'",
    );
    await expect(connect(url)).rejects.toMatchObject({
      retryable: false,
      message: expect.stringMatching(/has version 4.*needs version 3. Use a newer version/),
    });
    expect(await objects()).toBe("0");
  });

  it("refuses an older schema, and says what to run", async () => {
    await ask(postgresMigration());
    const client = await server.client({ connectionString: url });
    const send = async ({ text }: { text: string }): Promise<string> =>
      Object.values([await client.query(text)].flat().at(-1)?.rows[0]).join();
    await expect(setUp({ send }, 4)).rejects.toMatchObject({
      retryable: false,
      message: expect.stringMatching(/has version 3.*needs version 4. Run holdfast migrate/),
    });
    await client.end();
  });

  it.each([
    [1, "name (namespace text, key text, owner text)"],
    [2, "client (namespace text, key text, id text, touch bigint)"],
  ])(
    "refuses the tables of version %i, unreleased, and leaves them as they are",
    async (version, table) => {
      await ask("create schema holdfast");
      await ask(`create table holdfast.${table}`);
      await ask(
        `create function holdfast.execute_${version}(text, text[]) returns text ` +
          "language sql as 'select null'",
      );
      await expect(connect(url)).rejects.toMatchObject({
        retryable: false,
        message: expect.stringMatching(
          `has version ${version}.*needs version 3. Run holdfast migrate`,
        ),
      });
      await expect(ask(postgresMigration())).rejects.toMatchObject({ code: "LF005" });
      await using shop = new Workshop();
      const { code, stderr } = await shop.run(["migrate", "--store", url, "--apply"]);
      expect(code).not.toBe(0);
      expect(stderr).toContain("drop the schema holdfast while no program uses locks");
    },
  );

  it("uses its own version beside a newer one", async () => {
    await ask(postgresMigration());
    await ask(
      "create function holdfast.execute_4(text, text[]) returns text language sql as 'select null'",
    );
    await using locks = await connect(url);
    await locks.mutex("x").run(async () => {});
  });
});

describe("holdfast migrate", () => {
  it("prints SQL that psql can run", async () => {
    await using shop = new Workshop();
    const { code, stdout } = await shop.run(["migrate", "--store", url, "--role", 'a"pp']);
    expect(code).toBe(0);
    expect(stdout).toBe(postgresMigration({ role: 'a"pp' }));
    expect(stdout).toMatch(/^begin;\n.*\ncommit;\n$/s);
    expect(stdout).toContain('grant usage on schema holdfast to "a""pp";');
    expect(await objects()).toBe("0");
    await ask(stdout.replaceAll('"a""pp"', "app"));
    await using locks = await connect(as("app"));
    await useAll(locks);
  });

  it("applies it, again and beside programs that lock", async () => {
    await using shop = new Workshop();
    await using locks = await connect(url);
    let isOver = false;
    const working = (async () => {
      let turns = 0;
      for (; !isOver; turns += 1) await locks.mutex("x").run(async () => {});
      return turns;
    })();
    const env = { HOLDFAST_STORE: url };
    const runs = await Promise.all(
      Array.from({ length: 3 }, () => shop.run(["migrate", "--apply", "--role", "app"], { env })),
    );
    isOver = true;
    expect(await working).toBeGreaterThan(10);
    for (const { code, stdout, stderr } of runs) {
      expect({ code, stdout, stderr }).toEqual({
        code: 0,
        stdout: "",
        stderr: "holdfast: the schema is up to date.\n",
      });
    }
    await using other = await connect(as("app"));
    await useAll(other);
  });

  describe("beside a transaction of a program", () => {
    const TABLES = ["name", "holder", "waiter", "client", "tombstone", "server", "marker"];
    let program: Client;
    beforeEach(async () => {
      await ask(postgresMigration());
      program = await server.client({ connectionString: url });
      await program.query("begin");
    });
    afterEach(() => program.end());

    const use = (table: string): Promise<unknown> =>
      program.query(`lock table holdfast.${table} in row exclusive mode`);
    const isBlocked = async (): Promise<boolean> => {
      const text = "select 1 from pg_stat_activity where wait_event_type = 'Lock'";
      return (await server.ask(text)).length > 0;
    };

    it("waits for none of its locks", async () => {
      for (const table of TABLES) await use(table);
      let isDone = false;
      const migrating = ask(postgresMigration()).then(() => {
        isDone = true;
      });
      await waitUntil(async () => isDone || (await isBlocked()), { what: "an end, or a wait" });
      expect(isDone).toBe(true);
      await migrating;
    });

    it("makes an index that is missing, and never deadlocks", async () => {
      await ask("drop index holdfast.holder_expiry, holdfast.waiter_owner, holdfast.client_gone");
      // As a batch does: first the name, and then the tables in any order.
      await use("name");
      await use("waiter");
      const migrating = ask(postgresMigration());
      await waitUntil(isBlocked, { what: "the migration waits" });
      await use("client");
      await use("holder");
      await program.query("commit");
      await migrating;
      const [row] = await ask(
        "select count(*)::int as made from pg_class c where relkind = 'i' and " +
          "relname in ('holder_expiry', 'waiter_owner', 'client_gone')",
      );
      expect(row).toEqual({ made: 3 });
    });
  });

  it("changes nothing when a part of it fails", async () => {
    await using shop = new Workshop();
    const result = await shop.run(["migrate", "--apply", "--store", url, "--role", "nobody"]);
    expect(result.code).toBe(69);
    expect(result.stderr).toContain('role "nobody" does not exist');
    expect(await objects()).toBe("0");
  });

  it.each([
    [["--store", "redis://127.0.0.1:1"], "Only a store in Postgres has a schema"],
    [["--store", "postgres://127.0.0.1/a", "--role", ""], "must be the name of a role"],
    [["--store", "postgres://127.0.0.1/a", "extra"], "Unexpected argument"],
  ])("refuses %j", async (args, text) => {
    await using shop = new Workshop();
    const { code, stderr } = await shop.run(["migrate", ...args]);
    expect(code).toBe(64);
    expect(stderr).toContain(text);
  });
});

describe("a role with EXECUTE only", () => {
  beforeEach(() => ask(postgresMigration({ role: "app" })));

  it("can use every kind of lock, and the fence", async () => {
    await using locks = await connect(as("app"));
    await useAll(locks);
    const client = await server.client({ connectionString: as("app") });
    await client.query("select holdfast.fence('x', 7), holdfast.sweep_3(10)");
    await client.end();
  });

  it("can read and change no table, and call no other function", async () => {
    const client = await server.client({ connectionString: as("app") });
    const refused = { code: "42501" };
    const tables = await ask(
      "select tablename as name from pg_tables where schemaname = 'holdfast'",
    );
    expect(tables.length).toBeGreaterThan(9);
    for (const { name } of tables) {
      const read = client.query(`select * from holdfast.${name}`);
      await expect(read, String(name)).rejects.toMatchObject(refused);
      const change = client.query(`delete from holdfast.${name}`);
      await expect(change, String(name)).rejects.toMatchObject(refused);
    }
    const functions = await client.query(
      "select p.proname as name from pg_proc p join pg_namespace n on n.oid = pronamespace " +
        "where nspname = 'holdfast' and has_function_privilege(p.oid, 'execute') order by 1",
    );
    const names = functions.rows.map(({ name }) => name);
    expect(names).toEqual(["execute_3", "fence", "list_3", "sweep_3"]);
    const make = client.query("create table holdfast.mine (a int)");
    await expect(make).rejects.toMatchObject(refused);
    await client.end();
  });

  it("cannot lead a function astray by objects of its own", async () => {
    const client = await server.client({ connectionString: as("app") });
    await client.query("create temporary table fence_token (a int)");
    await client.query(
      "create function pg_temp.clock_timestamp() returns timestamptz language sql " +
        "as $$ select 'epoch'::timestamptz $$",
    );
    await client.query("set search_path = pg_temp, holdfast, public");
    await client.query("select holdfast.fence('x', 7)");
    const [row] = await ask("select used_at > '2020-01-01' as is_true from holdfast.fence_token");
    expect(row).toEqual({ is_true: true });
    await client.end();
  });
});
