/**
 * Faults of one Postgres server. The conformance kit checks the rules of the store; here backends
 * and the server are killed, stopped and restarted while clients hold and wait.
 */
import { inspect } from "node:util";
import pg from "pg";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { StoreError } from "../../src/errors/index.js";
import { postgresStore } from "../../src/stores/postgres/index.js";
import { startProxy } from "../faults/proxy.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";
import { untilWaiting } from "../stores/trial.js";
import { Trial, urlOf, useAll } from "./trial.js";

let server: PostgresServer;
let trial: Trial;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server?.close());
beforeEach(() => {
  trial = new Trial();
});
afterEach(() => trial.close());

const BACKENDS = "from pg_stat_activity where application_name = 'holdfast'";

async function backendPids(): Promise<number[]> {
  return (await server.ask(`select pid ${BACKENDS}`)).map(({ pid }) => Number(pid));
}

async function failureOf(promise: Promise<unknown>): Promise<StoreError> {
  const error = await promise.then(
    () => expect.unreachable("it succeeded"),
    (cause: unknown) => cause,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

describe("connections that end", () => {
  test("a lease and a waiter outlive the end of their connections", async () => {
    const [a, b] = [await trial.open(server.url), await trial.open(server.url)];
    const lease = await trial.acquire(a);
    const waiting = trial.acquire(b);
    await trial.waiting(a, 1);
    for (let round = 0; round < 5; round += 1) {
      const before = await backendPids();
      await server.ask(`select pg_terminate_backend(pid) ${BACKENDS}`);
      await waitUntil(
        async () => {
          const pids = await backendPids();
          return pids.length === 2 && !pids.some((pid) => before.includes(pid));
        },
        { what: "both clients have connected again" },
      );
      await lease.renew();
    }
    expect(await lease.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  });

  test("a lease survives the kill of a backend, which restarts the server", async () => {
    const [a, b] = [await trial.open(server.url), await trial.open(server.url)];
    const lease = await trial.acquire(a, { ttlMs: 20_000 });
    const waiting = trial.acquire(b, { ttlMs: 20_000 });
    await trial.waiting(a, 1);
    const [pid = 0] = await backendPids();
    process.kill(pid, "SIGKILL");
    // A renewal that was under way has no answer.
    await waitUntil(async () => (await lease.renew()) === undefined, { what: "a renewal" });
    expect((await b.inspect(trial.name)).holders.map(({ token }) => token)).toEqual([lease.token]);
    expect(await lease.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  });

  test.for(["restart", "crash"] as const)("a lease survives a %s of the server", async (how) => {
    const [a, b] = [await trial.open(server.url), await trial.open(server.url)];
    const lease = await trial.acquire(a, { ttlMs: 20_000 });
    const waiting = trial.acquire(b, { ttlMs: 20_000 });
    await trial.waiting(a, 1);
    if (how === "crash") await server.kill();
    else await server.stop();
    await server.start();
    await lease.renew();
    expect(await lease.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  });
});

describe("a server that does not answer", () => {
  test("a stopped server costs the lease, and serves the waiter when it goes on", async () => {
    const [a, b] = [await trial.open(server.url), await trial.open(server.url)];
    const lease = await trial.acquire(a, { ttlMs: 4_000 });
    const waiting = trial.acquire(b, { ttlMs: 20_000 });
    await trial.waiting(a, 1);
    await server.pause();
    try {
      await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      expect(lease.state).toBe("lost");
    } finally {
      server.resume();
    }
    expect(await (await waiting).release()).toBe(true);
  });
});

// Each of them waits for a timeout.
describe.concurrent("a server that cannot be used", () => {
  test("a statement without an answer holds up the next ones for one time-out only", async () => {
    await using trial = new Trial();
    await using proxy = await startProxy({ targetPort: server.port, framing: "postgres" });
    const locks = await trial.open(urlOf(proxy.port));
    await trial.turn(locks);
    for (const link of proxy.links) link.replies.lose();
    const lease = await trial.acquire(locks, { ttlMs: 20_000 });
    expect(proxy.counters.connections).toBe(2);
    expect(await lease.release()).toBe(true);
  });

  test("an error says why no server answers", async () => {
    await using trial = new Trial();
    const closed = await startProxy({ targetPort: server.port });
    const locks = await trial.open(urlOf(closed.port));
    await trial.turn(locks);
    await closed.close();
    const error = await failureOf(trial.acquire(locks, { storeTimeoutMs: 500 }));
    expect(error.message).toContain(`No Postgres answers at 127.0.0.1:${closed.port} (`);
    expect(error.message).toContain("ECONNREFUSED");
    expect(error.message).not.toMatch(/Postgres failed|answer.*answer/);
    await expect(trial.open(urlOf(closed.port))).rejects.toThrow("ECONNREFUSED");
  });

  test("a server without a free connection is named as such, and not as silent", async () => {
    await using small = await startPostgres({
      settings: { max_connections: "6", superuser_reserved_connections: "1", max_wal_senders: "2" },
    });
    await using trial = new Trial();
    const locks = await trial.open(small.url);
    await trial.turn(locks);
    const others: pg.Client[] = [];
    trial.closeLater(() => Promise.all(others.map((other) => other.end())));
    for (;;) {
      const other = await small.client().catch(() => null);
      if (!other) break;
      others.push(other);
    }
    // A client of another program takes the place of the store's connection.
    const isTaken = async (): Promise<boolean> => {
      await others[0]?.query(`select pg_terminate_backend(pid) ${BACKENDS}`);
      const other = await small.client().catch(() => null);
      if (other) others.push(other);
      return other !== null;
    };
    await waitUntil(isTaken, { what: "the last connection is taken" });
    const refused =
      `Postgres at 127.0.0.1:${small.port} refuses connections: all connections of the server ` +
      "are taken: raise max_connections, or use fewer (53300: ";
    const failing = [trial.acquire(locks, { storeTimeoutMs: 500 }), trial.open(small.url)];
    for (const { message } of await Promise.all(failing.map(failureOf))) {
      expect(message.replace(/^Lock "m": /, "").slice(0, refused.length)).toBe(refused);
      expect(message.split("53300")).toHaveLength(2);
      expect(message).not.toContain("No answer within");
    }
  });
});

describe("messages", () => {
  // Such a character takes twelve bytes of a message, which has room for less than 8,000.
  test.for([10, 600, 680, 1_024])("a reason of %i characters is told at once", async (size) => {
    const [a, b] = [await trial.open(server.url), await trial.open(server.url)];
    const lease = await trial.acquire(a, { ttlMs: 600_000 });
    const reason = "\0".repeat(size);
    const ended = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
    expect(await b.revoke(trial.name, { token: lease.token, reason })).toBe(true);
    await ended;
    expect(lease.signal.reason.message).toContain(reason);
  });

  test("a name of 512 such characters is handed off at once", async () => {
    const [a, b] = [await trial.open(server.url), await trial.open(server.url)];
    const name = "\u0001".repeat(512);
    const options = { ttlMs: 600_000, storeTimeoutMs: 20_000 };
    const lease = await a.mutex(name).acquire(options);
    const waiting = b.mutex(name).acquire(options);
    await untilWaiting(a, name);
    expect(await lease.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  });
});

test("messages that no function of the store sent change nothing", async () => {
  const [a, b] = [await trial.open(server.url), await trial.open(server.url)];
  const lease = await trial.acquire(a, { ttlMs: 20_000 });
  const waiting = trial.acquire(b, { ttlMs: 20_000 });
  await trial.waiting(a, 1);
  const text = "select key, owner, client from holdfast.waiter where namespace = $1";
  const [{ key, owner, client } = {}] = await server.ask(text, [trial.namespace]);
  const forged = ["g", key, owner, 9e15, 1, 1, 9e15];
  for (const payload of ["x", "[]", "{}", "?", '["g"]', '["m",1,2,3]', JSON.stringify(forged)]) {
    await server.ask("select pg_notify($1, $2)", [`holdfast:${client}`, payload]);
  }
  // The waiter asks the server about the forged grant, and is told that it has none.
  expect((await b.inspect(trial.name)).holders).toMatchObject([{ token: lease.token }]);
  expect(await lease.release()).toBe(true);
  expect(await (await waiting).release()).toBe(true);
});

describe("settings", () => {
  test("defaults of the role do not change the connection of the store", async () => {
    const settings = {
      default_transaction_isolation: "serializable",
      default_transaction_read_only: "on",
      statement_timeout: "1ms",
      lock_timeout: "1ms",
      idle_in_transaction_session_timeout: "1ms",
      idle_session_timeout: "200ms",
    };
    await server.ask("create role strict login superuser");
    for (const [name, value] of Object.entries(settings)) {
      await server.ask(`alter role strict set ${name} = '${value}'`);
    }
    const url = server.url.replace("postgres@", "strict@");
    await trial.turn(await trial.open(server.url));
    await useAll(trial, await trial.open(url), await trial.open(url));
  });

  test("a role without rights is told so, and works when it has them", async () => {
    await trial.turn(await trial.open(server.url));
    await server.ask("create role plain login");
    const url = server.url.replace("postgres@", "plain@");
    const refused = await failureOf(trial.open(url));
    expect(refused).toMatchObject({ outcome: "not_applied", retryable: false });
    expect(refused.message).toContain("GRANT");
    await server.ask("grant usage on schema holdfast to plain");
    await server.ask("grant execute on all functions in schema holdfast to plain");
    const locks = await trial.open(url);
    const lease = await trial.acquire(locks, { ttlMs: 4_000 });
    await server.ask("revoke execute on all functions in schema holdfast from plain");
    await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
    await failureOf(trial.acquire(locks));
    await server.ask("grant execute on all functions in schema holdfast to plain");
    await trial.turn(locks);
  });

  test("a database or a role that does not exist is no reason to wait", async () => {
    for (const [url, word] of [
      [server.url.replace(/postgres$/, "absent"), "3D000"],
      [server.url.replace("postgres@", "nobody@"), "28000"],
    ] as const) {
      const error = await failureOf(trial.open(url));
      expect(error).toMatchObject({ outcome: "not_applied", retryable: false });
      expect(error.message).toContain(word);
    }
  });

  test("no error has the password in it, nor the words of a command", async () => {
    const secret = "s3cret";
    const login = `postgres:${secret}@`;
    const closed = await startProxy({ targetPort: server.port });
    await closed.close();
    const urls = [
      server.url.replace("postgres@", `nobody:${secret}@`),
      server.url.replace("postgres@", login).replace(/postgres$/, "absent"),
      urlOf(closed.port).replace("postgres@", login),
      `${server.url.replace("postgres@", login)}?unknown=1`,
      `${server.url.replace("postgres@", login)}?sslmode=unknown`,
      `${server.url.replace("postgres@", login)}?sslmode=require`,
      `${server.url.replace("postgres@", login)}/more`,
      server.url.replace("postgres@", login).replace("127.0.0.1", "127.0.0.1:x"),
    ];
    for (const url of urls) {
      const error = await trial.open(url).then(
        () => expect.unreachable(url),
        (cause: unknown) => cause,
      );
      expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(secret);
    }
    await trial.turn(await trial.open(server.url));
    const sql = postgres(server.url, { onnotice: () => {} });
    const pool = new pg.Pool({ connectionString: server.url });
    trial.closeLater(() => Promise.all([sql.end(), pool.end()]));
    for (const clients of [{ pool }, { sql }]) {
      const locks = trial.add(new Holdfast(postgresStore({ ...clients, namespace: secret })));
      await locks.mutex("x").run(async () => {});
      await server.ask("alter table holdfast.name rename to moved");
      const error = await failureOf(locks.mutex("x").acquire({ storeTimeoutMs: 500 }));
      await server.ask("alter table holdfast.moved rename to name");
      expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(secret);
    }
  });

  test("a pool of which every connection is taken does not hold up the store", async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    const taken = await pool.connect();
    trial.closeLater(async () => {
      taken.release();
      await pool.end();
    });
    const locks = trial.add(new Holdfast(postgresStore({ pool, namespace: trial.namespace })));
    await taken.query("begin");
    await trial.turn(locks);
    expect(pool.totalCount).toBe(1);
  });

  test("a namespace may have any characters", async () => {
    const pool = new pg.Pool({ connectionString: server.url });
    trial.closeLater(() => pool.end());
    for (const namespace of [
      "",
      "\0",
      "a\0",
      "'; drop schema holdfast; --",
      '"{,}\\',
      "🔒\u0001",
    ]) {
      const locks = trial.add(new Holdfast(postgresStore({ pool, namespace })));
      const name = `${namespace}"\\{}'\0🔒`;
      const lease = await locks.mutex(name).acquire();
      const names = [];
      for await (const one of locks.list()) names.push(one.name);
      expect(names).toEqual([name]);
      await lease.release();
    }
  });
});
