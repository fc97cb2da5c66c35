/** The sweeper of the tables in Postgres: the rows that it removes and keeps, and their size. */

import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { NO_LIMIT } from "../../src/rules/fits.js";
import type { Acquire, Command, Release, Reply } from "../../src/rules/ledger-command.js";
import { decode, executeStatement } from "../../src/stores/postgres/codec.js";
import { postgresMigration } from "../../src/stores/postgres/migration.js";
import { isFull } from "../fixtures/depth.js";
import { randomOf } from "../fixtures/seed.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";

const random = randomOf("sweep");
const HOUR_US = 3_600_000_000;
const SIDE_TABLES = ["holder", "waiter", "client", "tombstone"];

let server: PostgresServer;
let client: Client;
let namespace: string;
let namespaces = 0;
let owners = 0;

beforeAll(async () => {
  server = await startPostgres({ settings: { autovacuum_naptime: "1s" } });
  await server.ask(postgresMigration());
});
afterAll(() => server?.close());
beforeEach(async () => {
  client = await server.client();
  namespaces += 1;
  namespace = `test-${namespaces}`;
});
afterEach(async () => {
  await client.end();
  for (const table of ["name", ...SIDE_TABLES]) await server.ask(`truncate holdfast.${table}`);
});

function acquire(key: string, changes: Partial<Acquire> = {}): Acquire {
  owners += 1;
  return {
    type: "acquire",
    key,
    owner: `owner-${owners}`,
    client: "c",
    mode: "exclusive",
    weight: 1,
    limit: NO_LIMIT,
    ttlUs: HOUR_US,
    span: 1,
    meta: "{}",
    enqueue: false,
    offerUs: HOUR_US,
    heartbeatUs: HOUR_US,
    notAfterUs: Number.MAX_SAFE_INTEGER,
    seenToken: 0,
    ...changes,
  };
}

function release({ key, owner }: Acquire, changes: Partial<Release> = {}): Release {
  return { type: "release", key, owner, tombstoneUs: 0, keep: null, ...changes };
}

async function execute(commands: readonly Command[], on: Client = client): Promise<Reply[]> {
  const { text, values } = executeStatement(namespace, commands);
  const { rows } = await on.query({ text: `${text} as answer`, values: [...values] });
  return decode(commands, rows[0].answer).replies as Reply[];
}

async function tokenOf(commands: readonly Command[], on: Client = client): Promise<number> {
  const [reply] = await execute(commands, on);
  if (reply?.type !== "granted") throw new Error(`not granted: ${JSON.stringify(reply)}`);
  return reply.token;
}

async function sweep(ageUs = -HOUR_US): Promise<void> {
  await server.ask("select holdfast.sweep_names_3('', '', 1000000, $1)", [ageUs]);
}

async function keys(table = "name"): Promise<unknown[]> {
  const text = `select key from holdfast.${table} where namespace = $1 order by key`;
  return (await server.ask(text, [namespace])).map(({ key }) => key);
}

/** Waits until the server's clock has passed the expiry of what lasts for a millisecond. */
async function untilExpired(): Promise<void> {
  await server.ask("select pg_sleep(0.01)");
}

describe("the sweeper removes", () => {
  it("names that are free, and keeps their tokens as the floor", async () => {
    // Ahead of the clock, so that only the floor can keep the next token above it.
    const seenToken = Date.now() * 1_000 + 24 * HOUR_US;
    const first = acquire("l:x", { seenToken });
    const token = await tokenOf([first]);
    expect(token).toBe(seenToken + 1);
    await execute([release(first)]);
    await sweep();
    expect(await keys()).toEqual([]);
    expect(await tokenOf([acquire("l:x")])).toBeGreaterThan(token);
    expect(await tokenOf([acquire("l:y"), acquire("l:z")])).toBeGreaterThan(token);
  });

  it("names whose holders, waiters, marks and tombstones are over", async () => {
    const brief = { ttlUs: 1_000, offerUs: 1_000, heartbeatUs: 1_000 };
    const marked = acquire("o:mark");
    await execute([
      acquire("l:crashed", brief),
      acquire("l:shared", { ...brief, mode: "shared" }),
      acquire("l:shared", { ...brief, mode: "shared" }),
      acquire("l:queue", brief),
      acquire("l:queue", { ...brief, enqueue: true }),
      marked,
      release(marked, { keep: { ttlUs: 1_000, meta: "{}" } }),
      release(acquire("l:tombstone"), { tombstoneUs: Date.now() * 1_000 + 50_000 }),
    ]);
    await untilExpired();
    const isEmpty = async (): Promise<boolean> => {
      await sweep();
      return (await keys()).length === 0;
    };
    await waitUntil(isEmpty, { what: "all of them are over" });
    for (const table of SIDE_TABLES) expect(await keys(table)).toEqual([]);
  });
});

describe("the sweeper keeps", () => {
  it("names with something alive, however old their tokens are", async () => {
    const marked = acquire("o:mark");
    const brief = { ttlUs: 1_000, offerUs: 1_000 };
    await execute([
      acquire("l:held"),
      acquire("l:shared", { mode: "shared", ttlUs: 1_000 }),
      acquire("l:shared", { mode: "shared" }),
      acquire("l:queue", brief),
      acquire("l:queue", { ...brief, enqueue: true }),
      marked,
      release(marked, { keep: { ttlUs: HOUR_US, meta: "{}" } }),
      release(acquire("l:tombstone"), { tombstoneUs: Date.now() * 1_000 + HOUR_US }),
    ]);
    await untilExpired();
    await sweep();
    expect(await keys()).toEqual(["l:held", "l:queue", "l:shared", "l:tombstone", "o:mark"]);
    expect((await keys("waiter")).length).toBe(1);
    expect((await keys("holder")).length).toBe(2);
  });

  it("names that were granted lately", async () => {
    const first = acquire("l:x");
    await execute([first, release(first)]);
    await sweep(HOUR_US);
    expect(await keys()).toEqual(["l:x"]);
  });

  it("rows that another transaction has locked, without waiting for it", async () => {
    const first = acquire("l:x");
    await execute([first, release(first)]);
    await client.query("begin");
    await client.query("select 1 from holdfast.name where namespace = $1 for update", [namespace]);
    await sweep();
    await client.query("commit");
    expect(await keys()).toEqual(["l:x"]);
  });
});

describe("a damaged row", () => {
  const year = 365 * 24 * HOUR_US;

  it.each([
    ["9223372036854775807", "the highest number"],
    ["9007199254740991", "the highest token"],
    [`${Date.now() * 1_000 + 2 * year}`, "two years ahead"],
    ["-1", "negative"],
  ])("with the token %s (%s) stays, and raises no floor", async (last) => {
    const firsts = ["l:a", "l:bad", "l:c"].map((key) => acquire(key));
    await execute([...firsts, ...firsts.map((first) => release(first))]);
    await server.ask("update holdfast.name set last = $1 where key = 'l:bad'", [last]);
    await sweep();
    expect(await keys()).toEqual(["l:bad"]);
    const token = await tokenOf([acquire("l:d")]);
    expect(token).toBeLessThan(Date.now() * 1_000 + HOUR_US);
  });

  it.each([
    ["name", "lease.owner = null"],
    ["name", "lease.token = 9223372036854775807"],
    ["name", "lease.expiry = (lease).granted - 1"],
    ["name", "shared = -1"],
    ["holder", "expiry = -9223372036854775807"],
  ])("of a holder is not taken for an old one: %s, %s", async (table, change) => {
    const mode = table === "holder" ? "shared" : "exclusive";
    await execute([acquire("l:bad", { mode }), acquire("l:good", { ttlUs: 1 })]);
    await server.ask(`update holdfast.${table} set ${change} where key = 'l:bad'`);
    await untilExpired();
    await sweep();
    expect(await keys()).toEqual(["l:bad"]);
    const asked = execute([acquire("l:bad"), acquire("l:other")]);
    expect((await asked).map((reply) => reply.type)).toEqual([undefined, "granted"]);
  });
});

describe("beside clients that lock", () => {
  it("gives no token twice and loses no holder", async () => {
    // Ahead of the clock: only rows and floors keep the tokens above it.
    const seenToken = Date.now() * 1_000 + 24 * HOUR_US;
    const tokens = new Map<string, number[]>();
    const names = ["l:a", "l:b", "l:c", "l:d"];
    const firsts = names.map((key) => acquire(key, { seenToken }));
    await execute([...firsts, ...firsts.map((first) => release(first))]);
    let collisions = 0;
    let isOver = false;
    const worker = async (): Promise<void> => {
      const own = await server.client();
      for (let round = 0; round < (isFull ? 3_000 : 200); round += 1) {
        const some = names.filter(() => random() < 0.5);
        const asked = some.map((key) => acquire(key));
        try {
          const replies = await execute(asked, own);
          const held = asked.filter((_, at) => replies[at]?.type === "granted");
          for (const [at, { key }] of asked.entries()) {
            const reply = replies[at];
            if (reply?.type !== "granted") continue;
            tokens.set(key, [...(tokens.get(key) ?? []), reply.token]);
          }
          const ended = await execute(
            held.map((one) => release(one)),
            own,
          );
          expect(ended.filter((reply) => reply.type === "released" && !reply.held)).toEqual([]);
        } catch (error) {
          expect((error as { code?: string }).code, String(error)).toBe("40001");
          collisions += 1;
        }
      }
      await own.end();
    };
    const sweeper = async (): Promise<number> => {
      let slices = 0;
      for (; !isOver; slices += 1) await sweep();
      return slices;
    };
    const sweeping = sweeper();
    await Promise.all(Array.from({ length: 4 }, worker));
    isOver = true;
    expect(await sweeping).toBeGreaterThan(10);
    for (const given of tokens.values()) {
      // The holder of a token has ended before the next one is granted, but not before it is told.
      expect(new Set(given).size).toBe(given.length);
      expect(Math.min(...given)).toBeGreaterThan(seenToken);
    }
    expect(collisions).toBeLessThan(isFull ? 6_000 : 400);
  });
});

describe("sweep_3", () => {
  const once = async (on: Client = client): Promise<boolean> =>
    (await on.query("select holdfast.sweep_3(50) as more")).rows[0].more;
  const untilDone = async (): Promise<number> => {
    let slices = 1;
    while (await once()) slices += 1;
    return slices;
  };

  beforeEach(() =>
    server.ask(
      "update holdfast.sweep set due = '-infinity', is_at_fences = false, namespace = '', key = ''",
    ),
  );

  it("goes through all rows in slices, and then rests for ten minutes", async () => {
    await server.ask(
      "insert into holdfast.name (namespace, key, last) " +
        "select $1, 'l:' || i, i from generate_series(1, 120) i",
      [namespace],
    );
    expect(await untilDone()).toBe(Math.floor(120 / 50) + 2);
    expect(await keys()).toEqual([]);
    expect(await once()).toBe(false);
    const [{ rest } = {}] = await server.ask(
      "select extract(epoch from due - clock_timestamp()) as rest from holdfast.sweep",
    );
    expect(Number(rest)).toBeGreaterThan(590);
    expect(Number(rest)).toBeLessThan(600);
  });

  it.each(["1 hour", "1 year", "infinity"])(
    "goes on at once where the clock was ahead by %s when it rested",
    async (ahead) => {
      await server.ask("insert into holdfast.name (namespace, key) values ($1, 'l:x')", [
        namespace,
      ]);
      const due = ahead === "infinity" ? "'infinity'" : `clock_timestamp() + interval '${ahead}'`;
      await server.ask(`update holdfast.sweep set due = ${due}`);
      await untilDone();
      expect(await keys()).toEqual([]);
      expect(await once()).toBe(false);
    },
  );

  it("is done by one client at a time", async () => {
    const other = await server.client();
    await other.query("begin");
    await other.query("select * from holdfast.sweep for update");
    expect(await once()).toBe(false);
    await other.query("rollback");
    expect(await once(other)).toBe(true);
    await other.end();
  });

  it("does nothing in a snapshot that is too old to see all holders", async () => {
    await client.query("begin isolation level repeatable read");
    expect(await once()).toBe(false);
    await client.query("rollback");
  });
});

describe("the size of the tables", { timeout: 15 * 60_000 }, () => {
  const COUNT = isFull ? 100_000 : 3_000;
  const pages = async (table: string): Promise<number> => {
    const text = `select pg_total_relation_size('holdfast.${table}') / 8192 as pages`;
    return Number((await server.ask(text))[0]?.pages);
  };
  /** How many rows were ever deleted, and how many no vacuum has removed yet. */
  const deletions = async (table: string): Promise<{ deleted: number; dead: number }> => {
    const text =
      "select n_tup_del::int as deleted, n_dead_tup::int as dead from pg_stat_user_tables " +
      "where schemaname = 'holdfast' and relname = $1";
    return (await server.ask(text, [table]))[0] as { deleted: number; dead: number };
  };
  /** Transactions of their own, as a client would send them. */
  const repeat = (statements: string): Promise<unknown> =>
    client.query(`do $$ begin for i in 1 .. ${COUNT} loop ${statements} end loop; end $$`);
  const call = (commands: readonly Command[]): string => {
    const { text, values } = executeStatement(namespace, commands);
    const literal = (_: string, nth: string): string => `'${values[Number(nth) - 1]}'`;
    return `${text.replace("select", "perform").replace(/\$(\d)/g, literal)}; commit;`;
  };
  /** Uses many names, lets them be swept, and uses as many others. */
  const expectReuse = async (
    table: string,
    use: (prefix: string) => Promise<unknown>,
    swept: () => Promise<unknown>,
  ): Promise<void> => {
    await use("first-");
    const most = await pages(table);
    const before = await deletions(table);
    await swept();
    const isReusable = async (): Promise<boolean> => {
      const { deleted, dead } = await deletions(table);
      return deleted >= before.deleted + COUNT && dead < COUNT / 8;
    };
    await waitUntil(isReusable, {
      what: "autovacuum makes room",
      everyMs: 200,
    });
    await use("second-");
    expect(await pages(table)).toBeLessThan(1.5 * most);
  };

  it("stays small for one name that is used all the time", async () => {
    const first = acquire("l:hot");
    await repeat(call([first]) + call([release(first)]));
    expect(await pages("name")).toBeLessThan(64);
  });

  it("stays small for many names that are used once", async () => {
    const first = acquire("l:NAME");
    const pair = call([first, release(first)]);
    const named = (prefix: string): string =>
      pair.replace(/'(\{[^']*NAME[^']*\})'/, `replace('$1', 'NAME', '${prefix}' || i)::text[]`);
    await expectReuse(
      "name",
      (prefix) => repeat(named(prefix)),
      () => sweep(),
    );
    expect((await keys()).length).toBe(COUNT);
  });

  it("stays small for fences, of one name and of many", async () => {
    const LONG_AGO = 1_700_000_000_000_000;
    await repeat("perform holdfast.fence('hot', i); commit;");
    expect(await pages("fence_token")).toBeLessThan(64);
    await expectReuse(
      "fence_token",
      (prefix) => repeat(`perform holdfast.fence('${prefix}' || i, ${LONG_AGO}); commit;`),
      () => server.ask("select holdfast.sweep_fences_3('', '', 1000000, '-1 hour')"),
    );
  });
});
