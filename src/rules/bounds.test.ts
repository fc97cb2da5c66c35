import { beforeEach, describe, expect, it } from "vitest";
import { LedgerTrial } from "../../test/fixtures/ledger-trial.js";
import { MAX_DURATION_US, MAX_HEARTBEAT_US, MAX_TURNS, YEAR_US } from "./bounds.js";
import { LAST_TOKEN } from "./token.js";

const refused = (reason: string) => ({ type: "refused", reason });
const keep = { ttlUs: Number.MAX_SAFE_INTEGER, meta: "{}" };
let trial: LedgerTrial;

beforeEach(() => {
  trial = new LedgerTrial();
});

describe("terms out of bounds", () => {
  it.each([
    { span: MAX_TURNS + 1 },
    { span: 0 },
    { ttlUs: MAX_DURATION_US + 1 },
    { ttlUs: Number.NaN },
    { weight: -1, mode: "shared" as const },
    { weight: 3, limit: 2, mode: "shared" as const },
    { limit: Number.POSITIVE_INFINITY },
  ])("%o are refused, and nothing is done", (terms) => {
    expect(trial.acquire("a", terms)).toEqual(refused("terms"));
    expect(trial.ledger.size).toBe(0);
  });

  it.each([
    { offerUs: MAX_DURATION_US + 1 },
    { heartbeatUs: MAX_HEARTBEAT_US + 1 },
    { heartbeatUs: 999 },
  ])("%o are refused to a waiter, whom alone they concern", (terms) => {
    trial.take("a", terms);
    expect(trial.acquire("b", terms)).toEqual(refused("terms"));
    expect(trial.inspect().waiters).toEqual([]);
  });

  it("are the longest that a renewal takes, and the longest that a release leaves behind", () => {
    trial.take("a");
    expect(trial.renew("a", { ttlUs: MAX_DURATION_US + 1 })).toEqual(refused("terms"));
    expect(trial.release("a", { tombstoneUs: 1e300, keep })).toMatchObject({ held: true });
    expect(trial.inspect().mark?.remainingUs).toBe(MAX_DURATION_US);
    trial.nowUs += MAX_DURATION_US;
    trial.inspect();
    expect(trial.ledger.size).toBe(0);
  });

  it("revoke no lease", () => {
    trial.take("a");
    expect(trial.revoke(Number.NaN)).toBe(false);
  });
});

describe("a token that a client says it has seen", () => {
  it("is counted on from within a year of the clock", () => {
    const seenToken = trial.wallUs + YEAR_US;
    expect(trial.take("a", { seenToken })).toBe(seenToken + 1);
  });

  it.each([YEAR_US + 1, 1e300, Number.NaN, Number.POSITIVE_INFINITY])(
    "is refused %d µs ahead of it, and others notice nothing",
    (aheadUs) => {
      const seenToken = trial.wallUs + aheadUs;
      expect(trial.acquire("a", { seenToken })).toEqual(refused("seen"));
      expect(trial.take("b")).toBe(trial.wallUs);
    },
  );

  it("is believed however high it is where the store gave it out", () => {
    const seenToken = trial.take("a");
    trial.release("a");
    trial.wallUs -= 50 * YEAR_US;
    expect(trial.take("b", { seenToken })).toBe(seenToken + 1);
  });

  it("does not keep a holder from renewing", () => {
    trial.take("a");
    expect(trial.renew("a", { seenToken: trial.wallUs + 2 * YEAR_US })).toMatchObject({
      type: "renewed",
    });
    trial.release("a");
    expect(trial.take("b")).toBeLessThan(trial.wallUs + YEAR_US);
  });
});

describe("the last of all tokens", () => {
  it("is granted whole; after it nothing is, and those who wait keep their places", () => {
    trial.wallUs = LAST_TOKEN;
    expect(trial.take("a", { span: MAX_TURNS })).toBe(LAST_TOKEN);
    trial.release("a");
    expect(trial.acquire("b")).toEqual(refused("tokens"));
    trial = new LedgerTrial();
    trial.take("a");
    trial.acquire("b");
    trial.wallUs = LAST_TOKEN + 1;
    trial.release("a");
    expect(trial.inspect()).toMatchObject({ holders: [], waiters: [{}] });
    trial.wallUs = LAST_TOKEN;
    trial.heartbeat("b");
    expect(trial.handedOff()).toMatchObject([{ owner: "b", token: LAST_TOKEN }]);
  });
});
