import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import type { LossReason } from "../../errors/index.js";
import type { OwnEntry, Proof, StoreSession } from "./sequencer.js";
import { type EntryOwner, Session } from "./session.js";

const TTL_MS = 30_000;
const PROVEN: Proof = { type: "proven", ttlMs: TTL_MS, missing: new Set() };

interface Asked {
  readonly atMs: number;
  answer(): void;
  fail(): void;
}

let runtime: ManualRuntime;
let asked: Asked[];
let ended: number;
let lost: LossReason[];
let proof: Proof;
/** The entries whose owner was told that they are missing. */
let missing: OwnEntry[];
let takesEntries: boolean;
/** The answer to a request, by its number. */
let onProve: (number: number) => "answer" | "fail" | "silence";

beforeEach(() => {
  runtime = new ManualRuntime(0);
  asked = [];
  ended = 0;
  lost = [];
  proof = PROVEN;
  missing = [];
  takesEntries = true;
  onProve = () => "answer";
});

const OWNER: EntryOwner = {
  onSessionLost: (_entry, _session, reason) => lost.push(reason),
  onMissing: (entry) => missing.push(entry),
};

/** A session without entries. */
function openUnused(isDedicated = false): Session {
  const storeSession = {
    prove: () =>
      new Promise<Proof>((resolve, reject) => {
        const one = {
          atMs: runtime.nowMs,
          answer: () => resolve(proof),
          fail: () => reject(new Error("down")),
        };
        const verdict = onProve(asked.push(one) - 1);
        if (verdict !== "silence") one[verdict]();
      }),
    end: async () => {
      ended += 1;
    },
    get takesEntries() {
      return takesEntries;
    },
  } as unknown as StoreSession;
  const options = { ttlMs: TTL_MS, isDedicated, sentMs: runtime.nowMs };
  return new Session(storeSession, options, runtime, () => {});
}

function open(isDedicated = false): Session {
  const session = openUnused(isDedicated);
  session.add({} as OwnEntry, OWNER);
  return session;
}

describe("a session", () => {
  it("is renewed every third of its ttl, for one ttl after its last entry left", async () => {
    openUnused();
    await runtime.advance(10 * TTL_MS);
    expect(asked.map(({ atMs }) => atMs)).toEqual([10_000, 20_000]);
    expect([lost, ended]).toEqual([[], 1]);
  });

  it("tells an owner at once that its entry is missing, whoever asked for the proof", async () => {
    const session = openUnused();
    const [entry, other] = [{}, {}] as [OwnEntry, OwnEntry];
    for (const one of [entry, other]) session.add(one, OWNER);
    proof = { type: "proven", ttlMs: TTL_MS, missing: new Set([entry]) };
    await runtime.advance(TTL_MS / 3);
    expect(asked).toHaveLength(1);
    expect(missing).toEqual([entry]);
    expect(missing[0]).toBe(entry);
    // A renewal that comes now is answered by that proof, which names no entry.
    expect(await session.renew()).toEqual(PROVEN);
  });

  it("ends with its last entry once the store can make no safe entries in it", async () => {
    const session = openUnused();
    const entry = {} as OwnEntry;
    session.add(entry, OWNER);
    takesEntries = false;
    expect([session.isOpen, session.isOver]).toEqual([false, false]);
    session.remove(entry);
    expect([session.isOver, lost, ended]).toEqual([true, [], 1]);
  });

  it("asks again within a quarter of the time left when an answer is lost", async () => {
    const session = open();
    onProve = (number) => (number === 0 ? "silence" : "answer");
    await runtime.advance(10_000);
    const remainingMs = session.deadlineMs - runtime.nowMs;
    await runtime.advance(remainingMs / 4 + 1);
    expect(asked).toHaveLength(2);
    expect(session.deadlineMs).toBeGreaterThan(runtime.nowMs + 0.9 * TTL_MS);
    await runtime.advance(TTL_MS / 2);
    expect(lost).toEqual([]);
  });

  it("asks at least three more times without an answer, then is lost", async () => {
    open();
    onProve = () => "silence";
    await runtime.advance(TTL_MS);
    expect(asked.length).toBeGreaterThanOrEqual(4);
    expect(lost).toEqual(["expired"]);
    expect(ended).toBe(1);
  });

  it("counts a late answer from the sending of its own request", async () => {
    const session = open();
    onProve = () => "silence";
    await runtime.advance(25_000);
    const [first] = asked;
    const before = session.deadlineMs;
    first?.answer();
    await runtime.advance(0);
    expect(session.deadlineMs - before).toBeCloseTo(first?.atMs ?? 0);
    expect(lost).toEqual([]);
  });

  it("answers all earlier requests with one proof", async () => {
    const session = open();
    onProve = (number) => (number === 0 ? "silence" : "answer");
    const renewing = session.renew(true);
    await runtime.advance(TTL_MS / 3);
    expect(await renewing).toBe(PROVEN);
  });

  it("sends one request for renewals at the same time", async () => {
    const session = open();
    onProve = () => "silence";
    const both = [session.renew(true), session.renew(true)];
    expect(asked).toHaveLength(1);
    asked[0]?.answer();
    expect(await Promise.all(both)).toEqual([PROVEN, PROVEN]);
  });

  it("asks soon again when the store fails", async () => {
    open();
    onProve = (number) => (number === 0 ? "fail" : "answer");
    await runtime.advance(10_501);
    expect(asked.map(({ atMs }) => atMs)).toEqual([10_000, 10_500]);
  });

  it("neither renews nor ends itself once its owner holds", async () => {
    const session = open(true);
    session.hand();
    await runtime.advance(TTL_MS);
    expect([asked.length, lost, ended]).toEqual([0, ["expired"], 0]);
  });
});
