import { beforeEach, describe, expect, it } from "vitest";
import { LedgerTrial } from "../../test/fixtures/ledger-trial.js";

const SECOND_US = 1_000_000;
const keep = { ttlUs: 60 * SECOND_US, meta: '{"done":true}' };
let trial: LedgerTrial;

beforeEach(() => {
  trial = new LedgerTrial();
});

describe("a mark", () => {
  it("takes the place of the lease and answers who comes later, until its time is over", () => {
    const token = trial.take("a");
    trial.release("a", { keep });
    trial.pass(20);
    const remainingUs = 40 * SECOND_US;
    expect(trial.acquire("b")).toEqual({ type: "marked", token, meta: keep.meta, remainingUs });
    expect(trial.inspect().mark).toEqual({ token, meta: keep.meta, remainingUs });
    trial.pass(40);
    expect(trial.acquire("c")).toMatchObject({ type: "granted" });
  });

  it("ends the waiters, and tells each of them", () => {
    const token = trial.take("a");
    trial.acquire("b");
    trial.acquire("c");
    trial.release("a", { keep });
    expect(trial.pushes).toEqual([
      { type: "marked", client: "b", key: trial.key, owner: "b", token, meta: keep.meta },
      { type: "marked", client: "c", key: trial.key, owner: "c", token, meta: keep.meta },
    ]);
    expect(trial.inspect()).toMatchObject({ holders: [], waiters: [] });
  });

  it("is left by the holder alone: not by a waiter, nor by a release that comes too late", () => {
    trial.take("a");
    trial.acquire("b");
    trial.release("b", { keep });
    expect(trial.inspect().mark).toBeNull();
    trial.pass(30);
    expect(trial.release("a", { keep })).toMatchObject({ held: false });
    expect(trial.inspect().mark).toBeNull();
  });

  it("can be revoked by its token, and is gone at once", () => {
    const token = trial.take("a");
    trial.release("a", { keep });
    expect(trial.revoke(token + 1)).toBe(false);
    expect(trial.revoke(token)).toBe(true);
    expect(trial.acquire("b")).toMatchObject({ type: "granted" });
  });

  it("leaves nothing when its time is over", () => {
    trial.take("a");
    trial.release("a", { keep });
    trial.pass(60);
    trial.inspect();
    expect(trial.ledger.size).toBe(0);
  });
});

describe("revoke", () => {
  it("ends the holder of any token of a span, and no other", () => {
    for (const turn of [0, 1, 4]) {
      const token = trial.take("a", { span: 5 });
      expect(trial.revoke(token - 1)).toBe(false);
      expect(trial.revoke(token + 5)).toBe(false);
      expect(trial.revoke(token + turn)).toBe(true);
      expect(trial.inspect().holders).toEqual([]);
      trial.pass(31);
    }
  });

  it("tells the holder why, now and whenever it asks again", () => {
    const token = trial.take("a");
    trial.revoke(token, "stuck deploy");
    const about = { client: "a", key: trial.key, owner: "a", token, reason: "stuck deploy" };
    expect(trial.pushes).toEqual([{ type: "revoked", ...about }]);
    const gone = { type: "gone", reason: "revoked", detail: "stuck deploy" };
    expect(trial.renew("a")).toEqual(gone);
    expect(trial.confirm("a")).toEqual(gone);
    expect(trial.acquire("a")).toEqual({ type: "stale", reason: "ended" });
    trial.release("a", { tombstoneUs: trial.nowUs + SECOND_US });
    expect(trial.renew("a")).toEqual(gone);
  });

  it("serves the next waiter at once", () => {
    const token = trial.take("a");
    trial.acquire("b");
    trial.revoke(token);
    expect(trial.handedOff().map(({ owner }) => owner)).toEqual(["b"]);
  });

  it("ends one of several shared holders", () => {
    const shared = { mode: "shared", limit: 3 } as const;
    const tokens = ["a", "b", "c"].map((owner) => trial.take(owner, shared));
    expect(trial.revoke(tokens[1] as number)).toBe(true);
    expect(trial.inspect().holders.map(({ token }) => token)).toEqual([tokens[0], tokens[2]]);
  });

  it("leaves nothing when the lease would have ended anyway", () => {
    trial.revoke(trial.take("a"));
    trial.pass(30);
    trial.inspect();
    expect(trial.ledger.size).toBe(0);
  });
});
