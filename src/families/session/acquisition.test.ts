import { beforeEach, describe, expect, it } from "vitest";
import { claimOf } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { CountedMoment } from "../../../test/fixtures/moment.js";
import type { Busy, Claim, Grant, Traits, Wait } from "../../contract/store.js";
import { StoreError } from "../../errors/index.js";
import { NO_LIMIT } from "../../rules/fits.js";
import { within } from "../../time/timers.js";
import { MAX_BACKSTOP_MS } from "./queue.js";
import type { Entering, Entry, ListedMark, Listing, Sequencer, StoreSession } from "./sequencer.js";
import { SessionStore } from "./session-store.js";

const TTL_MS = 60_000;
const PATIENT: Wait = {
  untilMs: Number.POSITIVE_INFINITY,
  ended: false,
  onEnd: () => {},
  report: () => {},
};

let runtime: ManualRuntime;
let isSilent: boolean;
/** Whether another entry is ahead of the own one. */
let isHeld: boolean;
let mark: ListedMark | null;
/** How many entries of this process were made. */
let made: number;

beforeEach(() => {
  mark = null;
  made = 0;
  runtime = new ManualRuntime();
  isSilent = false;
  isHeld = true;
});

/** Answers at once or not at all; every call ends within its limit. */
function ask<T>(answer: () => T, limitMs: number): Promise<T> {
  const answered = isSilent ? new Promise<T>(() => {}) : Promise.resolve().then(answer);
  return within(runtime.timers, limitMs, answered).catch((cause: Error) => {
    throw new StoreError(`etcd: ${cause.message}`, { outcome: "unknown", cause });
  });
}

function entry(id: string, token: bigint): Entry {
  const request = { mode: "exclusive", weight: 1, limit: NO_LIMIT } as const;
  return { ...request, id, token, session: "s", text: null };
}

function queue(): Listing {
  const ahead = isHeld ? [entry("other", 1n)] : [];
  const own = entry("own", BigInt(1 + made));
  return { moment: new CountedMoment(3), entries: [...ahead, own], mark };
}

function openStore(): SessionStore {
  const storeSession = {
    takesEntries: true,
    makeEntry: (claim: Claim) => ({
      lock: claim,
      claim,
      id: "own",
      text: "",
      token: 0n,
      isWithdrawn: false,
    }),
    enter: (own: { token: bigint }, _ifAlone: boolean, limitMs: number) =>
      ask((): Entering => {
        made += 1;
        own.token = BigInt(1 + made);
        return { type: "entered", listing: queue() };
      }, limitMs),
    leave: () => Promise.resolve({ wasThere: true, listing: null }),
    prove: (_: unknown, limitMs: number) =>
      ask(() => ({ type: "proven", ttlMs: TTL_MS, missing: new Set() }), limitMs),
    end: async () => {},
  } as unknown as StoreSession;
  return new SessionStore({
    name: "etcd",
    traits: {} as Traits,
    runtime,
    openSession: (_: number, limitMs: number) => ask(() => storeSession, limitMs),
    revoke: async () => true,
    list: (_lock: unknown, _look: unknown, limitMs: number) => ask(queue, limitMs),
    watchQueue: () => ({ close: () => {} }),
    watchOwn: () => ({ close: () => {} }),
    close: async () => {},
  } as unknown as Sequencer);
}

/** The result of an acquire, as soon as it is known. */
function acquire(
  claim: Partial<Claim> = {},
  store = openStore(),
): { result: Grant | Busy | Error | null } {
  const seen: { result: Grant | Busy | Error | null } = { result: null };
  const asked = store.acquire(claimOf("o", { ttlMs: TTL_MS, ...claim }), PATIENT);
  asked.then(
    (result) => (seen.result = result),
    (error) => (seen.result = error),
  );
  return seen;
}

describe("a silent store", () => {
  it("is endured for storeTimeoutMs, and the error says why", async () => {
    isSilent = true;
    const seen = acquire({ storeTimeoutMs: 4_000 });
    await runtime.advance(3_990);
    expect(seen.result).toBe(null);
    await runtime.advance(20);
    expect(seen.result).toBeInstanceOf(StoreError);
    const { message } = seen.result as unknown as Error;
    expect(message).toBe("The store was silent for 4000 ms. etcd: No answer within 1500 ms.");
  });

  it("is endured for storeTimeoutMs while waiting, counted from the first lost look", async () => {
    const seen = acquire({ storeTimeoutMs: 4_000 });
    await runtime.advance(10_000);
    isSilent = true;
    await runtime.advance(3_900);
    expect(seen.result).toBe(null);
    await runtime.advance(4_000);
    expect(seen.result).toBeInstanceOf(StoreError);
  });
});

it("does not run a finished once again where its entry is older than the mark", async () => {
  isHeld = false;
  mark = { token: 1n, session: "m", text: "" };
  const seen = acquire({ space: "once" });
  await runtime.advance(10);
  expect(seen.result).toMatchObject({ type: "busy", mark: { token: 1n } });
});

describe("a process that was stopped for longer than storeTimeoutMs", () => {
  it("goes on waiting: it was not the store that was silent", async () => {
    const seen = acquire({ storeTimeoutMs: 4_000 });
    await runtime.advance(10);
    // It is stopped while a look is under way.
    isSilent = true;
    await runtime.advance(4_000);
    runtime.block(30_000);
    isSilent = false;
    await runtime.advance(10_000);
    expect(seen.result).toBe(null);
    isHeld = false;
    await runtime.advance(4_000);
    expect(seen.result).toMatchObject({ type: "granted", token: 2n });
  });

  it("goes on with its first request", async () => {
    isSilent = true;
    const seen = acquire({ storeTimeoutMs: 4_000 });
    isHeld = false;
    await runtime.advance(500);
    runtime.block(30_000);
    isSilent = false;
    await runtime.advance(2_000);
    expect(seen.result).toMatchObject({ type: "granted", token: 2n });
  });
});

describe("a revocation by the client itself", () => {
  it("ends its grant", async () => {
    isHeld = false;
    const store = openStore();
    const seen = acquire({}, store);
    await runtime.advance(10);
    await store.revoke("lock", "x", 2n, "stuck");
    expect(seen.result).toMatchObject({ loss: { reason: "revoked", detail: "stuck" } });
  });

  it.each([
    ["that waits is not taken, though an older listing shows that it holds", 10],
    ["whose request has no answer yet is not taken either", 0],
  ])("of an entry %s", async (_, waitedMs) => {
    const store = openStore();
    const seen = acquire({}, store);
    await runtime.advance(waitedMs);
    await store.revoke("lock", "x", 2n, "stuck");
    isHeld = false;
    await runtime.advance(MAX_BACKSTOP_MS);
    expect(made).toBe(2);
    expect(seen.result).toMatchObject({ type: "granted", token: 3n });
  });
});
