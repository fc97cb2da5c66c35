import { describe, expect, it } from "vitest";
import { claimOf } from "../../test/fixtures/ledger-server.js";
import type { Grant } from "../contract/store.js";
import { Hold, type Tenant } from "./hold.js";

const tenant: Tenant = { lease: null, onWarning() {}, onLost() {}, onRenewal() {} };
const NONE = Number.POSITIVE_INFINITY;

function makeHold(given: Partial<ConstructorParameters<typeof Hold>[3]> = {}): {
  hold: Hold;
  grant: Grant;
} {
  const claim = claimOf("a");
  const grant: Grant = {
    type: "granted",
    claim,
    token: 1n,
    span: 1,
    deadlineMs: 30_000,
    locator: null,
  };
  const options = { ttlMs: 30_000, renew: true, graceMs: 0, maxHoldMs: NONE, ...given };
  return { hold: new Hold(grant, tenant, 1_000, options), grant };
}

describe("a hold", () => {
  it("is due for renewal after a third of the ttl", () => {
    expect(makeHold().hold.dueMs).toBe(11_000);
  });

  it.each([
    ["half of what is left, where that is less", 6_000, 3_500],
    ["a twentieth of the ttl at least", 1_800, 1_500],
    ["half of what is left all the same, where only that is in time", 1_400, 1_200],
  ])("is due for renewal after %s", (_, deadlineMs, dueMs) => {
    const { hold, grant } = makeHold({ ttlMs: 10_000 });
    grant.deadlineMs = deadlineMs;
    expect(hold.renewalDueMs(1_000)).toBe(dueMs);
  });

  it("that is not renewed is due at its deadline, less the grace", () => {
    expect(makeHold({ renew: false }).hold.dueMs).toBe(30_000);
    expect(makeHold({ renew: false, graceMs: 5_000 }).hold.dueMs).toBe(25_000);
  });

  it("moves its deadline with its grant", () => {
    const { hold, grant } = makeHold({ graceMs: 1_000 });
    grant.deadlineMs = 40_000;
    expect([hold.deadlineMs, hold.warningMs]).toEqual([40_000, 39_000]);
    expect(hold.loss.reason).toBe("expired");
  });

  it("ends at maxHoldMs, however far its grant reaches, and says so", () => {
    const { hold, grant } = makeHold({ maxHoldMs: 35_000 });
    expect([hold.deadlineMs, hold.loss.reason]).toEqual([30_000, "expired"]);
    grant.deadlineMs = 60_000;
    expect([hold.deadlineMs, hold.loss.reason]).toEqual([36_000, "max_hold"]);
  });

  it("warns once, is not renewed any more then, and is due at its end", () => {
    const { hold } = makeHold({ graceMs: 5_000 });
    expect(hold.warn()).toBe(true);
    expect(hold.warn()).toBe(false);
    expect(hold.renews).toBe(false);
    hold.plan();
    expect(hold.dueMs).toBe(30_000);
  });

  it("is due for its warning before a renewal that would come too late", () => {
    const { hold } = makeHold({ graceMs: 14_000, ttlMs: 30_000 });
    hold.renewMs = 20_000;
    hold.plan();
    expect(hold.dueMs).toBe(16_000);
  });
});
