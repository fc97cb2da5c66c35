/** A reply that cannot be used ends the one call that it belongs to, and no other. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { claimOf, type LedgerArbiter, LedgerServer } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import type { Grant } from "../../contract/store.js";
import { StoreError } from "../../errors/index.js";
import { foreignData } from "../../events/foreign-data.js";
import { AcquireWait } from "../../lease/acquire-wait.js";
import { NO_LIMIT } from "../../rules/fits.js";
import type { Command, Reply } from "../../rules/ledger-command.js";
import { LedgerStore } from "./ledger-store.js";

const KEY = "l:x";
let runtime: ManualRuntime;
let server: LedgerServer;
let arbiter: LedgerArbiter;
let store: LedgerStore;
const escaped: unknown[] = [];
const onEscape = (error: unknown): void => void escaped.push(error);

const forever = (): AcquireWait => new AcquireWait(runtime, Number.POSITIVE_INFINITY, undefined);

/** A holder whose token is no number. */
const spoilt = {
  token: Number.NaN,
  span: 1,
  mode: "exclusive",
  weight: 1,
  limit: NO_LIMIT,
  meta: "{}",
  heldUs: 0,
  remainingUs: 1,
} as const;
const strange = { outcome: "unknown", retryable: false };

/** Replies to commands on the name come from elsewhere. */
function spoil(reply: (command: Command) => Reply | StoreError): void {
  arbiter.impostor = (commands) =>
    commands.map((command) => (command.key === KEY ? reply(command) : server.do(command)));
}

beforeEach(async () => {
  runtime = new ManualRuntime();
  server = new LedgerServer(runtime);
  arbiter = server.connect();
  store = new LedgerStore(arbiter);
  await store.inspect("lock", "other");
  escaped.length = 0;
  process.on("unhandledRejection", onEscape);
});
afterEach(async () => {
  await new Promise((resume) => setImmediate(resume));
  process.off("unhandledRejection", onEscape);
  expect(escaped).toEqual([]);
});

it("ends the acquisition that it answers, not the other acquisitions of its batch", async () => {
  spoil(() => ({ type: "busy", holder: spoilt, dueUs: 1 }));
  const asked = watch(store.acquire(claimOf("a"), null));
  const beside = watch(store.acquire(claimOf("b", { name: "y" }), null));
  await runtime.advance(0);
  expect(asked.error).toBeInstanceOf(StoreError);
  expect(asked.error).toMatchObject(strange);
  expect(beside.value).toMatchObject({ type: "granted" });
});

it("ends a wait whose heartbeat it answers", async () => {
  const held = new LedgerStore(server.connect());
  await held.acquire(claimOf("h", { ttlMs: 600_000 }), null);
  const asked = watch(store.acquire(claimOf("a"), forever()));
  await runtime.advance(100);
  expect(asked.state).toBe("pending");
  spoil(() => foreignData("field x"));
  await runtime.advance(10_000);
  expect(asked.error).toMatchObject(strange);
  expect(runtime.keepsAlive).toBe(false);
});

it("that a heartbeat cannot use is asked for again", async () => {
  const held = new LedgerStore(server.connect());
  const grant = (await held.acquire(claimOf("h", { ttlMs: 600_000 }), null)) as Grant;
  const asked = watch(store.acquire(claimOf("a", { storeTimeoutMs: 60_000 }), forever()));
  await runtime.advance(100);
  spoil(() => ({
    type: "heartbeat",
    grants: [],
    waiting: 1,
    more: false,
    holder: spoilt,
    dueUs: 1,
  }));
  await runtime.advance(5_100);
  expect(arbiter.sentOf("heartbeat").length).toBeGreaterThan(0);
  arbiter.impostor = null;
  arbiter.pushes = "kept";
  void held.release(grant, 1_000);
  await runtime.advance(5_000);
  expect(asked.value).toMatchObject({ type: "granted" });
});

it("to a renewal leaves the lease to its deadline, and the other leases renewed", async () => {
  const grant = (await store.acquire(claimOf("a"), null)) as Grant;
  const other = (await store.acquire(claimOf("b", { name: "y" }), null)) as Grant;
  const renewed = { type: "renewed", remainingUs: 1, waiting: false, token: Number.NaN, span: 1 };
  spoil(() => renewed as Reply);
  const renewals = await store.renew([grant, other].map((one) => ({ grant: one, ttlMs: 30_000 })));
  expect(renewals).toMatchObject([{ type: "unknown" }, { type: "renewed" }]);
});

it("to a confirm ends the acquisition", async () => {
  arbiter.believesPushes = false;
  store = new LedgerStore(arbiter);
  const holder = new LedgerStore(server.connect());
  const grant = (await holder.acquire(claimOf("h"), null)) as Grant;
  const asked = watch(store.acquire(claimOf("a"), forever()));
  await runtime.advance(0);
  spoil(() => ({ type: "renewed", remainingUs: 1e9, waiting: false, token: Number.NaN, span: 1 }));
  void holder.release(grant, 1_000);
  await runtime.advance(0);
  expect(asked.error).toMatchObject(strange);
});

it("to a release is its failure", async () => {
  const grant = (await store.acquire(claimOf("a"), null)) as Grant;
  spoil(() => foreignData("field x"));
  await expect(store.release(grant, 1_000)).rejects.toMatchObject(strange);
  await store.close();
});
