import { beforeEach, describe, expect, it } from "vitest";
import { LedgerTrial } from "../../test/fixtures/ledger-trial.js";

const SECOND_US = 1_000_000;
let trial: LedgerTrial;

beforeEach(() => {
  trial = new LedgerTrial();
});

describe("acquire", () => {
  it("grants a free name for the ttl, with a token that follows the clock", () => {
    expect(trial.acquire("a")).toEqual({
      type: "granted",
      token: trial.wallUs,
      span: 1,
      remainingUs: 30 * SECOND_US,
    });
  });

  it("answers a repeat with the same grant, and what is left of it", () => {
    const token = trial.take("a", { span: 4 });
    trial.pass(3);
    const again = trial.acquire("a", { span: 4 });
    expect(again).toEqual({ type: "granted", token, span: 4, remainingUs: 27 * SECOND_US });
    expect(trial.inspect().holders).toHaveLength(1);
  });

  it("does not queue who would not wait, and names the holder", () => {
    const token = trial.take("a");
    trial.pass(2);
    const busy = trial.acquire("b", { enqueue: false });
    expect(busy).toMatchObject({ type: "busy", dueUs: 28 * SECOND_US });
    expect(busy).toMatchObject({ holder: { token, meta: '{"by":"a"}', heldUs: 2 * SECOND_US } });
    expect(trial.inspect().waiters).toEqual([]);
  });

  it("tells the place once, and keeps it for a repeat", () => {
    trial.take("a");
    expect(trial.acquire("b")).toMatchObject({ type: "queued", ahead: 0 });
    expect(trial.acquire("c")).toMatchObject({ type: "queued", ahead: 1 });
    expect(trial.acquire("b")).toMatchObject({ type: "queued", ahead: null });
    trial.release("a");
    expect(trial.handedOff().map(({ owner }) => owner)).toEqual(["b"]);
  });

  it("is refused after notAfter, to the microsecond", () => {
    expect(trial.acquire("a", { notAfterUs: trial.nowUs })).toMatchObject({ type: "granted" });
    const late = trial.acquire("b", { notAfterUs: trial.nowUs - 1 });
    expect(late).toEqual({ type: "stale", reason: "late" });
    expect(trial.inspect().waiters).toEqual([]);
  });

  it("raises the store's token to the highest the client has seen", () => {
    const seenToken = trial.wallUs + 5_000;
    expect(trial.take("a", { seenToken })).toBe(seenToken + 1);
  });
});

describe("renew", () => {
  it("moves the expiry on and tells whether others wait", () => {
    const token = trial.take("a");
    trial.pass(10);
    const waiting = false;
    const remainingUs = 30 * SECOND_US;
    expect(trial.renew("a")).toEqual({ type: "renewed", remainingUs, waiting, token, span: 1 });
    trial.acquire("b");
    expect(trial.renew("a")).toMatchObject({ waiting: true });
  });

  it("never shortens", () => {
    trial.take("a");
    expect(trial.renew("a", { ttlUs: SECOND_US })).toMatchObject({ remainingUs: 30 * SECOND_US });
    trial.pass(29);
    expect(trial.renew("a", { ttlUs: SECOND_US })).toMatchObject({ remainingUs: SECOND_US });
  });

  it("never re-creates a grant: expired, replaced, or never there", () => {
    trial.take("a");
    trial.pass(30);
    expect(trial.renew("a")).toEqual({ type: "gone", reason: "missing", detail: "" });
    trial.take("b");
    expect(trial.renew("a")).toEqual({ type: "gone", reason: "replaced", detail: "" });
    expect(trial.renew("nobody")).toMatchObject({ type: "gone" });
    expect(trial.inspect().holders).toHaveLength(1);
  });

  it("is refused after notAfter, and changes nothing then", () => {
    trial.take("a");
    trial.pass(10);
    const late = trial.renew("a", { notAfterUs: trial.nowUs - 1 });
    expect(late).toEqual({ type: "stale", reason: "late" });
    expect(trial.inspect().holders[0]?.remainingUs).toBe(20 * SECOND_US);
  });

  it("raises the store's token, too", () => {
    trial.take("a");
    const seenToken = trial.wallUs + 5_000;
    trial.renew("a", { seenToken });
    trial.release("a");
    expect(trial.take("b")).toBe(seenToken + 1);
  });
});

describe("release", () => {
  it("frees the name, says whether it was held, and touches no other owner when repeated", () => {
    trial.take("a");
    expect(trial.release("a")).toEqual({ type: "released", held: true, offerUs: 0, more: false });
    trial.take("b");
    expect(trial.release("a")).toMatchObject({ held: false });
    expect(trial.inspect().holders[0]?.meta).toBe('{"by":"b"}');
  });

  it("leaves the queue as well, and says that nothing was held", () => {
    trial.take("a");
    trial.acquire("b");
    expect(trial.release("b")).toMatchObject({ held: false });
    expect(trial.inspect().waiters).toEqual([]);
    trial.release("a");
    expect(trial.pushes).toEqual([]);
    expect(trial.ledger.size).toBe(0);
  });

  it("tells the releaser how long the next one has to confirm", () => {
    trial.take("a");
    trial.acquire("b");
    expect(trial.release("a")).toMatchObject({ held: true, offerUs: 5 * SECOND_US });
  });

  it("of a waiter in front lets those behind it in", () => {
    trial.take("a", { mode: "shared" });
    trial.acquire("b", { mode: "exclusive" });
    trial.acquire("c", { mode: "shared" });
    trial.release("b");
    expect(trial.handedOff().map(({ owner }) => owner)).toEqual(["c"]);
  });
});

describe("a ghost", () => {
  it("is refused by the tombstone for as long as a copy may be under way", () => {
    const copy = trial.request("a");
    trial.do(copy);
    trial.release("a", { tombstoneUs: copy.notAfterUs });
    trial.pass(10 - 1e-6);
    expect(trial.do(copy)).toEqual({ type: "stale", reason: "ended" });
    trial.pass(1e-6);
    trial.pass(1e-6);
    expect(trial.do(copy)).toEqual({ type: "stale", reason: "late" });
    expect(trial.ledger.size).toBe(0);
  });

  it("is refused also when the release overtook the acquire", () => {
    const copy = trial.request("a");
    expect(trial.release("a", { tombstoneUs: copy.notAfterUs })).toMatchObject({ held: false });
    expect(trial.do(copy)).toEqual({ type: "stale", reason: "ended" });
  });

  it("leaves nothing behind on the clean path", () => {
    trial.take("a");
    trial.release("a");
    expect(trial.ledger.size).toBe(0);
    trial.release("a", { tombstoneUs: trial.nowUs });
    expect(trial.ledger.size).toBe(0);
  });
});

describe("a restart without the data", () => {
  it("goes on above the highest token that any client has seen", () => {
    trial.take("a");
    const seenToken = trial.take("b", { key: "l:other", span: 32 }) + 31;
    trial.ledger.forget();
    trial.wallUs -= 60 * SECOND_US;
    expect(trial.renew("a", { seenToken })).toMatchObject({ type: "gone" });
    expect(trial.take("c")).toBeGreaterThan(seenToken);
  });
});
