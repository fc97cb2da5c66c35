import { beforeEach, expect, it, vi } from "vitest";
import { claimOf } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { CountedMoment } from "../../../test/fixtures/moment.js";
import { watch } from "../../../test/fixtures/outcome.js";
import { StoreError } from "../../errors/index.js";
import { HeldEntries } from "./held-entries.js";
import { Queues } from "./queues.js";
import type { Entry, ListedMark, OwnEntry, Sequencer } from "./sequencer.js";
import type { Session } from "./session.js";
import { Withdrawals } from "./withdrawals.js";

const TOKEN = 7n;
const MARK = { ttlMs: 60_000, text: "done" };

let runtime: ManualRuntime;
/** Whether the first try takes effect; it is not answered. */
let isDone: boolean;
let mark: ListedMark | null;
/** How often the queue is read at a server that is behind, and how often in all. */
let staleLooks: number;
let looks: number;

beforeEach(() => {
  runtime = new ManualRuntime();
  isDone = false;
  mark = null;
  staleLooks = 0;
  looks = 0;
});

const proven = vi.fn(async () => ({ type: "proven", ttlMs: 1_000, missing: new Set() }));

const entry: OwnEntry = {
  lock: { space: "once", name: "a" },
  claim: claimOf("a"),
  id: "1",
  text: "",
  token: TOKEN,
  isWithdrawn: false,
};

/** Releases an entry; no try after the first finds the entry in the store. */
async function release(leaves: typeof MARK | undefined): Promise<boolean> {
  let tries = 0;
  const leave = async (_: OwnEntry, options: { readonly mark?: typeof MARK | undefined }) => {
    tries += 1;
    if (tries > 1) return { wasThere: false, listing: null };
    if (isDone && options.mark) mark = { token: TOKEN, session: "", text: "done" };
    throw new StoreError("The connection broke.", { outcome: "unknown" });
  };
  const list = async () => {
    looks += 1;
    const isBehind = looks <= staleLooks;
    const listed = { id: entry.id, token: TOKEN } as Entry;
    const [entries, seen] = isBehind ? [[listed], null] : [[], mark];
    return { moment: new CountedMoment(1), entries, mark: seen };
  };
  const sequencer = { runtime, list } as unknown as Sequencer;
  const session = { storeSession: { leave }, remove: () => {}, isOver: false, renew: proven };
  const withdrawals = new Withdrawals(sequencer, new Queues(sequencer, new HeldEntries()));
  const released = withdrawals.release(entry, session as unknown as Session, 5_000, leaves);
  await runtime.advance(1_000);
  return await released;
}

it("counts a release whose first try was not answered", async () => {
  isDone = true;
  expect(await release(undefined)).toBe(true);
  expect(await release(MARK)).toBe(true);
});

it("tells that no mark was left where the entry was removed before the first try", async () => {
  expect(await release(MARK)).toBe(false);
  mark = { token: TOKEN - 1n, session: "", text: "of an earlier run" };
  expect(await release(MARK)).toBe(false);
});

it("goes on after a release without an answer, but keeps no process alive", async () => {
  let tries = 0;
  const leave = async () => {
    tries += 1;
    throw new StoreError("The connection broke.", { outcome: "unknown" });
  };
  const sequencer = { runtime } as unknown as Sequencer;
  const session = { storeSession: { leave }, isOver: false } as unknown as Session;
  const withdrawals = new Withdrawals(sequencer, new Queues(sequencer, new HeldEntries()));
  const released = watch(withdrawals.release(entry, session, 20, undefined));
  await runtime.advance(20);
  expect(released.state).toBe("rejected");
  expect(runtime.keepsAlive).toBe(false);
  const triesInTime = tries;
  await runtime.advance(5_000);
  expect(tries).toBeGreaterThan(triesInTime + 3);
});

it("looks for the mark again where the queue still shows the entry", async () => {
  isDone = true;
  staleLooks = 2;
  expect(await release(MARK)).toBe(true);
  expect(looks).toBe(3);
});

it.each([
  ["an entry that is missing", TOKEN, false, 1],
  ["an entry that was removed", TOKEN, true, 0],
  ["an entry that was never made", 0n, false, 0],
])("asks for a proof of the session after the release of %s", async (_, token, wasThere, count) => {
  proven.mockClear();
  const leave = async () => ({ wasThere, listing: null, nextAt: null });
  const session = { storeSession: { leave }, remove: () => {}, isOver: false, renew: proven };
  const sequencer = { runtime } as unknown as Sequencer;
  const withdrawals = new Withdrawals(sequencer, new Queues(sequencer, new HeldEntries()));
  const given = { ...entry, token };
  await withdrawals.release(given, session as unknown as Session, 5_000, undefined);
  expect(proven).toHaveBeenCalledTimes(count);
});
