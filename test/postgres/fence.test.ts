/** The fence in SQL: transactions that overlap, in each isolation level, and beside the sweeper. */

import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { postgresMigration } from "../../src/stores/postgres/migration.js";
import { isFull } from "../fixtures/depth.js";
import { randomOf } from "../fixtures/seed.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";

const LEVELS = ["read committed", "repeatable read", "serializable"] as const;
const STALE = "LF001";
const NOT_SERIALIZABLE = "40001";
/** A token of a store whose tokens are times. */
const LONG_AGO = 1_700_000_000_000_000;
const random = randomOf("fence");
const ROUNDS = isFull ? 2_000 : 150;

let server: PostgresServer;
let clients: Client[];
const name = "invoice:42";
let namespace: string;
let namespaces = 0;

beforeAll(async () => {
  server = await startPostgres();
  await server.ask(postgresMigration());
});
afterAll(() => server?.close());
beforeEach(() => {
  clients = [];
  namespaces += 1;
  namespace = `test-${namespaces}`;
});
afterEach(() => Promise.all(clients.map((client) => client.end())));

async function connect(): Promise<Client> {
  const client = await server.client();
  clients.push(client);
  return client;
}

async function begin(level: string = LEVELS[0]): Promise<Client> {
  const client = await connect();
  await client.query(`begin isolation level ${level}`);
  return client;
}

/** Resolves with "passed", or with the code of the error. */
async function fence(client: Client, token: number, of: string = name): Promise<string> {
  try {
    await client.query("select holdfast.fence($1, $2, $3)", [of, token, namespace]);
    return "passed";
  } catch (error) {
    return (error as { code: string }).code;
  }
}

/** The connection is inside of a statement that waits for a lock. */
async function untilBlocked(client: Client & { processID?: number }): Promise<void> {
  const text = "select wait_event_type as type from pg_stat_activity where pid = $1";
  await waitUntil(async () => (await server.ask(text, [client.processID]))[0]?.type === "Lock", {
    what: "the statement waits for a lock",
  });
}

describe("one after the other", () => {
  it("refuses a lower token, and accepts the same token again", async () => {
    const client = await connect();
    expect(await fence(client, 7)).toBe("passed");
    expect(await fence(client, 7)).toBe("passed");
    expect(await fence(client, 6)).toBe(STALE);
    expect(await fence(client, 9)).toBe("passed");
    expect(await fence(client, 8)).toBe(STALE);
  });

  it("says which token was used, and what to do", async () => {
    const client = await connect();
    await fence(client, 1_794_796_481_115_001);
    const call = client.query("select holdfast.fence($1, 7, $2)", [name, namespace]);
    await expect(call).rejects.toMatchObject({
      message: `The token 7 for '${name}' is stale: the token 1794796481115001 was used.`,
      hint: "A newer holder of the lock has written. Roll back, and give up this work.",
    });
  });

  it("keeps names and namespaces apart", async () => {
    const client = await connect();
    await fence(client, 7);
    expect(await fence(client, 6, `${name}'`)).toBe("passed");
    const { rows } = await client.query("select holdfast.fence($1, 6)", [name]);
    expect(rows).toEqual([{ fence: "6" }]);
    expect(await fence(client, 6)).toBe(STALE);
  });

  it.each(["null, 7", "'x', null", "'x', 7, null"])("refuses a null: fence(%s)", async (values) => {
    const client = await connect();
    const call = client.query(`select holdfast.fence(${values})`);
    await expect(call).rejects.toMatchObject({ code: "22004" });
  });

  it("forgets a token whose transaction is rolled back", async () => {
    const client = await begin();
    expect(await fence(client, 8)).toBe("passed");
    await client.query("rollback");
    expect(await fence(client, 7)).toBe("passed");
  });
});

describe.each(LEVELS)("two at once, %s", (level) => {
  const isReadCommitted = level === LEVELS[0];

  it.each([
    { first: 8, second: 7, passes: false, why: "is refused after a higher token commits" },
    { first: 7, second: 8, passes: true, why: "passes after a lower token commits" },
  ])("the second call waits and $why", async ({ first, second, passes }) => {
    for (const isNew of [true, false]) {
      if (!isNew) await fence(await connect(), 1);
      const [one, other] = [await begin(level), await begin(level)];
      // The snapshot of the other transaction is older than the commit of the first one.
      await other.query("select 1 from pg_class limit 1");
      expect(await fence(one, first)).toBe("passed");
      const waiting = fence(other, second);
      await untilBlocked(other);
      await one.query("commit");
      const atEase = passes ? "passed" : STALE;
      expect(await waiting).toBe(isReadCommitted ? atEase : NOT_SERIALIZABLE);
      await other.query("rollback");
      namespace += "'";
    }
  });

  it("the second call passes after a rollback of the first", async () => {
    const [one, other] = [await begin(level), await begin(level)];
    await other.query("select 1 from pg_class limit 1");
    await fence(one, 8);
    const waiting = fence(other, 7);
    await untilBlocked(other);
    await one.query("rollback");
    expect(await waiting).toBe("passed");
    await other.query("commit");
  });
});

describe("the sweeper", () => {
  const sweep = (age: string): Promise<unknown> =>
    server.ask("select * from holdfast.sweep_fences_3('', '', 1000000, $1::interval)", [age]);
  const rows = async (): Promise<unknown> => {
    const text = "select token from holdfast.fence_token where namespace = $1";
    return (await server.ask(text, [namespace])).length;
  };

  it.each(LEVELS)("leaves no way for a stale token, %s", async (level) => {
    const client = await connect();
    // All moments at which the sweeper can come, seen from a transaction with a stale token.
    await fence(client, LONG_AGO + 1_008);
    const before = await begin(level);
    await before.query("select 1 from pg_class limit 1");
    await sweep("0");
    expect(await rows()).toBe(0);
    expect(await fence(before, LONG_AGO + 1_007)).toBe(STALE);
    expect(await fence(await begin(level), LONG_AGO + 1_007)).toBe(STALE);
    expect(await fence(client, LONG_AGO + 1_008)).toBe("passed");
  });

  it("refuses an old snapshot that can see neither the row nor the floor", async () => {
    const stale = await begin("repeatable read");
    await stale.query("select 1 from pg_class limit 1");
    const client = await connect();
    await fence(client, LONG_AGO + 2_008);
    await sweep("0");
    // With an age of zero every transaction is too old.
    const setAge = (age: string): Promise<unknown> =>
      server.ask(
        "create or replace function holdfast.fence_age() returns interval " +
          `language sql immutable as $$ select interval '${age}' $$`,
      );
    await setAge("0");
    expect(await fence(stale, LONG_AGO + 2_007)).toBe(NOT_SERIALIZABLE);
    await setAge("30 days");
  });

  it("keeps rows that were used, and rows that a transaction has locked", async () => {
    await fence(await connect(), LONG_AGO + 3_000);
    await sweep("1 hour");
    expect(await rows()).toBe(1);
    const open = await begin();
    await fence(open, LONG_AGO + 3_001);
    await sweep("0");
    await open.query("commit");
    expect(await fence(await connect(), LONG_AGO + 3_000)).toBe(STALE);
  });

  it("lets tokens of stores that count pass beside tokens that are times", async () => {
    const client = await connect();
    expect(await fence(client, LONG_AGO + 4_000, "by time")).toBe("passed");
    expect(await fence(client, 40, "by count")).toBe("passed");
    await sweep("0");
    expect(await fence(client, 7, "new by count")).toBe("passed");
    expect(await fence(client, LONG_AGO + 3_999, "new by time")).toBe(STALE);
    expect(await fence(client, 39, "by count")).toBe(STALE);
  });

  it("keeps rows whose token is no time of the past: a new token must pass the floor", async () => {
    const client = await connect();
    const future = Date.now() * 1_000 + 3_600_000_000;
    expect(await fence(client, future, "ahead")).toBe("passed");
    expect(await fence(client, 9e15, "by mistake")).toBe("passed");
    await sweep("0");
    expect(await fence(client, Date.now() * 1_000, "other")).toBe("passed");
    expect(await fence(client, future - 1, "ahead")).toBe(STALE);
    expect(await fence(client, 9e15 - 1, "by mistake")).toBe(STALE);
  });

  it("goes through all rows in slices, in the order of their keys", async () => {
    await server.ask("delete from holdfast.fence_token");
    await server.ask(
      "select holdfast.fence('n' || i, $1::bigint + i, 'a' || i % 3) " +
        "from generate_series(1, 100) i",
      [LONG_AGO],
    );
    const seen: string[] = [];
    let [at]: Record<string, unknown>[] = [{ namespace: "", name: "" }];
    do {
      [at] = await server.ask("select * from holdfast.sweep_fences_3($1, $2, 7, '0')", [
        at?.namespace,
        at?.name,
      ]);
      seen.push(`${at?.namespace} ${at?.name}`);
    } while (at?.name !== null);
    expect(seen.length).toBe(Math.floor(100 / 7) + 1);
    expect(seen).toEqual([...seen.slice(0, -1).sort(), "null null"]);
    expect(await server.ask("select * from holdfast.fence_token")).toEqual([]);
    expect(await server.ask("select * from holdfast.fence_floor where namespace ~ '^a'")).toEqual([
      { namespace: "a0", token: `${LONG_AGO + 99}` },
      { namespace: "a1", token: `${LONG_AGO + 100}` },
      { namespace: "a2", token: `${LONG_AGO + 98}` },
    ]);
  });
});

describe("many at once", () => {
  // The sweeper of this test is so quick that only read committed bears it.
  it.each([
    { levels: LEVELS, age: "1 hour", what: "in all levels" },
    { levels: LEVELS.slice(0, 1), age: "1 ms", what: "while rows are swept" },
  ])("commits writes in the order of their tokens, $what", async ({ levels, age }) => {
    await server.ask("drop table if exists account");
    await server.ask("create table account (name text primary key, tokens bigint[] not null)");
    const some = ["a", "b", "c"];
    for (const one of some) await server.ask("insert into account values ($1, '{}')", [one]);
    let token = LONG_AGO;
    const outcomes: Record<string, number> = {};
    const write = async (client: Client): Promise<string> => {
      const of = some[Math.floor(random() * some.length)] ?? "";
      // Half of them were overtaken on their way.
      token += 1;
      const own = token - (random() < 0.5 ? Math.floor(random() * 20) : 0);
      const level = levels[Math.floor(random() * levels.length)];
      await client.query(`begin isolation level ${level}`);
      const outcome = await fence(client, own, of);
      if (outcome !== "passed" || random() < 0.2) {
        await client.query("rollback");
        return outcome;
      }
      const update = "update account set tokens = tokens || $2::bigint where name = $1";
      return await client.query(update, [of, own]).then(
        () => client.query("commit").then(() => "committed"),
        (error: { code: string }) => client.query("rollback").then(() => error.code),
      );
    };
    const worker = async (): Promise<void> => {
      const client = await connect();
      for (let round = 0; round < ROUNDS; round += 1) {
        const outcome = await write(client);
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      }
    };
    let isOver = false;
    const sweeper = async (): Promise<void> => {
      const client = await connect();
      const text = "select holdfast.sweep_fences_3('', '', 100, $1::interval)";
      while (!isOver) await client.query(text, [age]);
    };
    const sweeping = sweeper();
    await Promise.all(Array.from({ length: 6 }, worker));
    isOver = true;
    await sweeping;
    for (const { tokens } of await server.ask("select tokens from account")) {
      const written = (tokens as string[]).map(Number);
      expect(written).toEqual([...written].sort((a, b) => a - b));
    }
    expect(outcomes.committed).toBeGreaterThan(ROUNDS);
    expect(outcomes[STALE]).toBeGreaterThan(ROUNDS / 10);
  });
});
