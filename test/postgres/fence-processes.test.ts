/** Holders that are stopped around and inside of their fenced transactions. */
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { connect } from "../../src/index.js";
import { postgresMigration } from "../../src/stores/postgres/migration.js";
import { type ControlledProcess, startProcess } from "../faults/process.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";

const TTL_MS = 1_000;
const STALE = "LF001";

let server: PostgresServer;
let writers: ControlledProcess[];

beforeAll(async () => {
  server = await startPostgres();
  await server.ask(postgresMigration());
  await server.ask("create table invoice (id int primary key, tokens bigint[] not null)");
});
afterAll(() => server?.close());
beforeEach(async () => {
  writers = [];
  await server.ask("truncate invoice");
  await server.ask("insert into invoice values (42, '{}')");
});
afterEach(async () => {
  for (const writer of writers) await writer[Symbol.asyncDispose]();
});

interface Answer {
  readonly step: string;
  readonly answer: string;
}

/** A process that holds the lock. Its steps are begun one by one. */
class Writer {
  readonly process: ControlledProcess;

  constructor(settings: string) {
    const module = new URL("./fence-writer.mjs", import.meta.url);
    const args = [server.url, `${TTL_MS}`, settings];
    this.process = startProcess(module, { args });
    writers.push(this.process);
  }

  async answerTo(step: string): Promise<string> {
    return (await this.process.receive<Answer>((message) => message.step === step)).answer;
  }

  begin(step: string): Promise<void> {
    return this.process.send({ step });
  }

  async does(step: string): Promise<string> {
    await this.begin(step);
    return await this.answerTo(step);
  }

  async doesAll(...steps: readonly string[]): Promise<void> {
    for (const step of steps) expect(await this.does(step), step).toBe("done");
  }
}

async function start(settings = ""): Promise<Writer> {
  const writer = new Writer(settings);
  await writer.answerTo("start");
  return writer;
}

/** The tokens of all writes, in the order of their commits. */
async function written(): Promise<unknown> {
  return (await server.ask("select tokens from invoice"))[0]?.tokens;
}

async function untilFenceWaits(): Promise<void> {
  const text =
    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'holdfast.fence'";
  await waitUntil(async () => (await server.ask(text)).length > 0, { what: "a fence waits" });
}

it("refuses a holder that was stopped before its fence", async () => {
  const [slow, quick] = [await start(), await start()];
  await slow.does("acquire");
  await slow.does("begin");
  await slow.process.pause();
  const token = await quick.does("acquire");
  await quick.doesAll("begin", "fence", "write", "commit");
  await slow.begin("fence");
  slow.process.resume();
  expect(await slow.answerTo("fence")).toBe(STALE);
  expect(await slow.does("write")).toBe("25P02");
  expect(await slow.does("state")).toBe("lost");
  expect(await written()).toEqual([token]);
});

it("lets a holder that was stopped inside its transaction commit first", async () => {
  const [slow, quick] = [await start(), await start()];
  const first = await slow.does("acquire");
  await slow.doesAll("begin", "fence");
  await slow.process.pause();
  const second = await quick.does("acquire");
  await quick.does("begin");
  await quick.begin("fence");
  await untilFenceWaits();
  slow.process.resume();
  await slow.doesAll("write", "commit");
  expect(await quick.answerTo("fence")).toBe("done");
  await quick.doesAll("write", "commit");
  expect(await written()).toEqual([first, second]);
  await slow.does("begin");
  expect(await slow.does("fence")).toBe(STALE);
});

it("goes on without a stopped holder where the server ends idle transactions", async () => {
  const slow = await start("-c idle_in_transaction_session_timeout=1500");
  const quick = await start();
  await slow.does("acquire");
  await slow.doesAll("begin", "fence", "write");
  await slow.process.pause();
  const token = await quick.does("acquire");
  await quick.doesAll("begin", "fence", "write", "commit");
  slow.process.resume();
  expect(await slow.does("commit")).not.toBe("done");
  expect(await written()).toEqual([token]);
});

it("forgets a holder that is killed inside its transaction", async () => {
  const [slow, quick] = [await start(), await start()];
  await slow.does("acquire");
  await slow.doesAll("begin", "fence", "write");
  await slow.process.kill();
  const token = await quick.does("acquire");
  await quick.doesAll("begin", "fence", "write", "commit");
  expect(await written()).toEqual([token]);
});

it("delays no renewal of the same process while its transaction is open", async () => {
  const pool = new pg.Pool({ connectionString: server.url, max: 1 });
  await using locks = await connect(server.url, { ttlMs: TTL_MS });
  const names = Array.from({ length: 101 }, (_, index) => `lock-${index}`);
  const leases = await Promise.all(names.map((name) => locks.mutex(name).acquire()));
  const [fenced] = leases;
  const client = await pool.connect();
  await client.query("begin");
  for (const [at, { token }] of leases.entries()) {
    await client.query("select holdfast.fence($1, $2)", [names[at], token]);
  }
  await client.query("select pg_sleep($1)", [(3 * TTL_MS) / 1_000]);
  expect(leases.map(({ state }) => state).filter((state) => state !== "held")).toEqual([]);
  for (const lease of leases) lease.assertHeld();
  const update = "update invoice set tokens = tokens || $1::bigint where id = 42";
  await client.query(update, [fenced?.token]);
  await client.query("commit");
  expect(await written()).toEqual([String(fenced?.token)]);
  await Promise.all(leases.map((lease) => lease.release()));
  client.release();
  await pool.end();
});
