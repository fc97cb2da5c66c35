import { beforeEach, describe, expect, it } from "vitest";
import { LedgerTrial } from "../../test/fixtures/ledger-trial.js";

const SECOND_US = 1_000_000;
let trial: LedgerTrial;

const owners = (): string[] => trial.handedOff().map(({ owner }) => owner);

beforeEach(() => {
  trial = new LedgerTrial();
});

describe("a handoff", () => {
  it("grants to the next in the release itself, for the offer window", () => {
    const token = trial.take("a");
    trial.acquire("b", { span: 3 });
    trial.pass(1);
    trial.release("a");
    const [grant] = trial.handedOff();
    expect(grant).toMatchObject({ owner: "b", span: 3, grantedUs: trial.nowUs });
    expect(grant?.expiryUs).toBe(trial.nowUs + 5 * SECOND_US);
    expect(grant?.token).toBeGreaterThan(token);
  });

  it("is extended once, by the first word of the owner", () => {
    trial.take("a");
    trial.acquire("b");
    trial.release("a");
    trial.pass(4);
    expect(trial.confirm("b")).toMatchObject({ type: "renewed", remainingUs: 30 * SECOND_US });
    trial.pass(4);
    expect(trial.confirm("b")).toMatchObject({ type: "renewed", remainingUs: 26 * SECOND_US });
  });

  it("counts a repeated acquire and a renewal as that word", () => {
    for (const speak of [
      (owner: string) => trial.acquire(owner),
      (owner: string) => trial.renew(owner),
    ]) {
      trial.take("a");
      trial.acquire("b");
      trial.release("a");
      expect(speak("b")).toMatchObject({ remainingUs: 30 * SECOND_US });
      trial.pass(6);
      expect(trial.inspect().holders).toHaveLength(1);
      trial.release("b");
    }
  });

  it("serves as many as fit, and stops at the first that does not", () => {
    trial.take("w");
    for (const owner of ["a", "b"]) trial.acquire(owner, { mode: "shared", limit: 3 });
    trial.acquire("c", { mode: "shared", limit: 3, weight: 2 });
    trial.acquire("d", { mode: "shared", limit: 3 });
    trial.release("w");
    expect(owners()).toEqual(["a", "b"]);
    trial.confirm("b");
    trial.release("a");
    expect(owners()).toEqual(["c"]);
    trial.release("b");
    expect(owners()).toEqual(["d"]);
  });

  it("happens by expiry, too, with the next command of any client", () => {
    trial.take("a");
    trial.acquire("b", { heartbeatUs: 60 * SECOND_US });
    trial.pass(30);
    trial.inspect();
    expect(owners()).toEqual(["b"]);
  });
});

describe("no request overtakes", () => {
  it("a waiting writer stops new readers", () => {
    trial.take("r", { mode: "shared" });
    trial.acquire("w");
    expect(trial.acquire("s", { mode: "shared" })).toMatchObject({ type: "queued", ahead: 1 });
    expect(trial.acquire("t", { mode: "shared", enqueue: false })).toMatchObject({ type: "busy" });
  });

  it("a heavy request is not starved by light ones", () => {
    trial.take("a", { mode: "shared", limit: 4, weight: 2 });
    trial.acquire("h", { mode: "shared", limit: 4, weight: 4 });
    expect(trial.acquire("l", { mode: "shared", limit: 4 })).toMatchObject({ type: "queued" });
  });
});

describe("a client that does not answer", () => {
  it("is waited for as long as the most patient of its waiters said, also when others left", () => {
    trial.take("h");
    trial.acquire("hasty", { client: "c", heartbeatUs: SECOND_US });
    trial.acquire("patient", { client: "c", heartbeatUs: 5 * SECOND_US });
    trial.release("hasty");
    trial.pass(14);
    trial.release("h");
    expect(owners()).toEqual(["patient"]);
  });

  it("is passed over when an offer lapses, keeps its places, and its heartbeat serves it", () => {
    trial.take("h");
    trial.acquire("d1");
    trial.acquire("d2");
    trial.acquire("e");
    trial.release("h");
    expect(owners()).toEqual(["d1"]);
    trial.pass(5);
    trial.heartbeat("e");
    expect(owners()).toEqual(["e"]);
    expect(trial.inspect().waiters.map(({ meta }) => meta)).toEqual(['{"by":"d2"}']);
    trial.confirm("e");
    trial.acquire("f");
    trial.heartbeat("d");
    trial.release("e");
    expect(owners()).toEqual(["d2"]);
  });

  it("is passed over at once where the store knows that it cannot be reached", () => {
    trial.take("h");
    trial.acquire("d1");
    trial.acquire("e");
    trial.unreachable.add("d");
    trial.release("h");
    expect(owners()).toEqual(["e"]);
    trial.unreachable.clear();
    trial.heartbeat("d");
    trial.release("e");
    expect(owners()).toEqual(["d1"]);
  });

  it("is served by its heartbeat, whose answer tells, while no push can reach it", () => {
    trial.take("h");
    trial.acquire("d1");
    trial.unreachable.add("d");
    trial.release("h");
    expect(owners()).toEqual([]);
    trial.heartbeat("e");
    expect(owners()).toEqual([]);
    expect(trial.heartbeat("d")).toMatchObject({ grants: [{ owner: "d1" }] });
    expect(trial.inspect().holders.map(({ meta }) => meta)).toEqual(['{"by":"d1"}']);
  });

  it("does not stand in the way of newcomers while it is unresponsive", () => {
    trial.take("h");
    trial.acquire("d1");
    trial.acquire("d2");
    trial.release("h");
    trial.pass(5);
    expect(trial.acquire("n")).toMatchObject({ type: "granted" });
  });

  it("loses its places after three silent periods, to the microsecond", () => {
    trial.take("h", { ttlUs: 3_600 * SECOND_US });
    trial.acquire("d1");
    trial.pass(15 - 1e-6);
    expect(trial.inspect().waiters).toHaveLength(1);
    trial.pass(1e-6);
    expect(trial.inspect().waiters).toHaveLength(0);
  });

  it("keeps them as long as it sends heartbeats", () => {
    trial.take("h", { ttlUs: 3_600 * SECOND_US });
    trial.acquire("d1");
    for (let period = 0; period < 10; period += 1) {
      trial.pass(14);
      expect(trial.heartbeat("d")).toMatchObject({ waiting: 1, grants: [] });
    }
  });

  it("costs one claim, with 1,000 waiters as with one", () => {
    trial.take("h");
    for (let index = 0; index < 1_000; index += 1) trial.acquire(`d${index}`);
    trial.acquire("e");
    trial.release("h");
    trial.pass(5);
    trial.heartbeat("e");
    expect(owners()).toEqual(["d0", "e"]);
    expect(trial.inspect().waiters).toHaveLength(999);
    trial.confirm("e");
    trial.pass(10);
    expect(trial.inspect().waiters).toHaveLength(0);
  });

  it("learns of grants it missed when its heartbeat comes in time", () => {
    trial.take("h");
    trial.acquire("d1");
    trial.release("h");
    const [pushed] = trial.handedOff();
    trial.pass(1);
    expect(trial.heartbeat("d").grants).toEqual([pushed]);
    trial.confirm("d1");
    expect(trial.heartbeat("d").grants).toEqual([]);
  });
});
