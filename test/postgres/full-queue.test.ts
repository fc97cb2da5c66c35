/**
 * A NOTIFY queue that another role has filled: a commit with a message fails. The store sends none
 * then, and waiters ask.
 */
import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { examined } from "../stores/examined.js";
import { Trial } from "./trial.js";

let server: PostgresServer | null = null;
let trial: Trial;
beforeAll(async () => {
  // Before Postgres 17 the queue has 8 GB, and this setting does not exist.
  const settings = { max_notify_queue_pages: "64" };
  server = await startPostgres({ settings }).catch(() => null);
  await server?.ask("create role attacker login");
});
afterAll(() => server?.close());
beforeEach((context) => {
  if (!server) return context.skip("Postgres 17 or newer is needed");
  trial = new Trial();
});
afterEach(() => trial?.close());

const isFull = { code: "54000" };

/** A transaction that listens keeps all later messages in the queue. */
async function fillQueue(url: string): Promise<void> {
  const connectionString = url.replace("//postgres@", "//attacker@");
  const clients: Client[] = [];
  for (let at = 0; at < 2; at += 1) {
    const client = await server?.client({ connectionString });
    if (!client) throw new Error("The server has not started.");
    clients.push(client);
    trial.closeLater(() => client.end());
  }
  const [listening, noisy] = clients as [Client, Client];
  await listening.query("listen noise");
  await listening.query("begin");
  for (let isRoom = true; isRoom; ) {
    isRoom = await noisy.query("select pg_notify('noise', repeat('x', 7900))").then(
      () => true,
      (error: unknown) => {
        expect(error).toMatchObject(isFull);
        return false;
      },
    );
  }
}

test("a lock is handed off, and the doctor says why it takes a while", async () => {
  const url = server?.url ?? "";
  const [a, b, c] = [await trial.open(url), await trial.open(url), await trial.open(url)];
  const lease = await trial.acquire(a, { ttlMs: 60_000 });
  const waiting = trial.acquire(b, { ttlMs: 6_000 });
  await trial.waiting(a, 1);
  await fillQueue(url);
  expect(await lease.release()).toBe(true);
  const next = await waiting;
  await expect(server?.ask("select pg_notify('noise', '')")).rejects.toMatchObject(isFull);
  expect(await a.revoke(trial.name, { token: next.token, reason: "test" })).toBe(true);
  expect((await examined(c)).of("postgres/notify-queue").severity).toBe("warning");
});
