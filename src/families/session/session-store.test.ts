import { beforeEach, expect, it } from "vitest";
import { claimOf } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { CountedMoment } from "../../../test/fixtures/moment.js";
import { watch } from "../../../test/fixtures/outcome.js";
import type { Claim, Traits, Wait } from "../../contract/store.js";
import { NO_LIMIT } from "../../rules/fits.js";
import type { Entering, Entry, Listing, Obstacle, OwnEntry, Sequencer } from "./sequencer.js";
import { SessionStore } from "./session-store.js";

const PATIENT: Wait = {
  untilMs: Number.POSITIVE_INFINITY,
  ended: false,
  onEnd: () => {},
  report: () => {},
};

let runtime: ManualRuntime;
let store: SessionStore;
let entries: Entry[];
/** The owners of the entries that were asked for. */
let asked: string[];
let watched: Obstacle[];
/** The owners whose request is answered late, if at all. */
let unanswered: Set<string>;
let answers: (() => void)[];

beforeEach(() => {
  runtime = new ManualRuntime();
  entries = [];
  asked = [];
  watched = [];
  unanswered = new Set();
  answers = [];
  store = openStore();
});

const listing = (): Listing => ({
  moment: new CountedMoment(asked.length),
  entries: [...entries],
  mark: null,
});

async function enter(own: OwnEntry & { id: string; token: bigint }): Promise<Entering> {
  const { owner } = own.claim;
  asked.push(owner);
  if (unanswered.has(owner)) await new Promise<void>((answer) => answers.push(answer));
  own.id = owner;
  own.token = BigInt(asked.length);
  const request = { mode: "exclusive", weight: 1, limit: NO_LIMIT } as const;
  entries.push({ ...request, id: own.id, token: own.token, session: "s", text: null });
  return { type: "entered", listing: listing() };
}

/** One session, and one queue. */
function openStore(): SessionStore {
  const storeSession = {
    takesEntries: true,
    makeEntry: (claim: Claim, text: string) => ({ lock: claim, claim, text, token: 0n }),
    enter,
    end: async () => {},
  };
  return new SessionStore({
    name: "etcd",
    traits: {} as Traits,
    runtime,
    openSession: async () => storeSession,
    list: async () => listing(),
    watchQueue: (_: unknown, obstacle: Obstacle) => {
      watched.push(obstacle);
      return { close: () => {} };
    },
    watchOwn: () => ({ close: () => {} }),
    close: async () => {},
  } as unknown as Sequencer);
}

const acquire = (owner: string, wait: Wait | null) =>
  watch(store.acquire(claimOf(owner, { name: "m", ttlMs: 60_000, storeTimeoutMs: 4_000 }), wait));

it("asks at once for a call that does not wait, whatever earlier calls wait for", async () => {
  unanswered.add("a");
  acquire("a", PATIENT);
  const behind = acquire("b", PATIENT);
  const attempt = acquire("c", null);
  await settled();
  expect(asked).toEqual(["a", "c"]);
  expect(attempt.value).toMatchObject({ type: "granted" });
  expect(behind.state).toBe("pending");
});

it("counts the silence of the store from its last answer to a call of the line", async () => {
  unanswered.add("a").add("b");
  const [first, second] = [acquire("a", PATIENT), acquire("b", PATIENT)];
  await runtime.advance(3_000);
  answers[0]?.();
  await settled();
  expect(first.value).toMatchObject({ type: "granted" });
  expect(asked).toEqual(["a", "b"]);
  await runtime.advance(3_999);
  expect(second.error).toBeUndefined();
  await runtime.advance(1);
  expect(String(second.error)).toContain("The store was silent for 4000 ms.");
});

it("has the waiters of this process watch an entry that is detached", async () => {
  const held = acquire("a", PATIENT);
  await settled();
  acquire("b", PATIENT);
  await settled();
  // The release of "a" would have shown "b" the queue.
  expect(watched).toEqual([]);
  if (held.value?.type === "granted") store.detach(held.value);
  await settled();
  expect(watched).toHaveLength(1);
});
