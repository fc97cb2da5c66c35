import { describe, expect, it } from "vitest";
import { claimOf } from "../../test/fixtures/ledger-server.js";
import { ScriptedGrant } from "../../test/fixtures/scripted-store.js";
import type { Grant } from "../contract/store.js";
import { type GrantUser, HeldGrant } from "./held-grant.js";

const user: GrantUser = { lease: null, onWarning() {}, onLost() {}, onRenewal() {} };
const NONE = Number.POSITIVE_INFINITY;

function makeHold(given: Partial<ConstructorParameters<typeof HeldGrant>[3]> = {}): {
  held: HeldGrant;
  grant: Grant;
} {
  const claim = claimOf("a");
  const grant = new ScriptedGrant(claim, 1n, 30_000);
  const options = { ttlMs: 30_000, renew: true, graceMs: 0, maxHoldMs: NONE, ...given };
  return { held: new HeldGrant(grant, user, 1_000, options, { onEnd() {} }), grant };
}

describe("a held grant", () => {
  it("is due for renewal after a third of the ttl", () => {
    expect(makeHold().held.dueMs).toBe(11_000);
  });

  it.each([
    ["half of what is left, where that is less", 6_000, 3_500],
    ["a twentieth of the ttl at least", 1_800, 1_500],
    ["half of what is left all the same, where only that is in time", 1_400, 1_200],
  ])("is due for renewal after %s", (_, deadlineMs, dueMs) => {
    const { held, grant } = makeHold({ ttlMs: 10_000 });
    grant.deadlineMs = deadlineMs;
    expect(held.renewalDueMs(1_000)).toBe(dueMs);
  });

  it("that is not renewed is due at its deadline, less the grace", () => {
    expect(makeHold({ renew: false }).held.dueMs).toBe(30_000);
    expect(makeHold({ renew: false, graceMs: 5_000 }).held.dueMs).toBe(25_000);
  });

  it("moves its deadline with its grant", () => {
    const { held, grant } = makeHold({ graceMs: 1_000 });
    grant.deadlineMs = 40_000;
    expect([held.deadlineMs, held.warningMs]).toEqual([40_000, 39_000]);
    expect(held.loss.reason).toBe("expired");
  });

  it("ends at maxHoldMs, however far its grant reaches, and says so", () => {
    const { held, grant } = makeHold({ maxHoldMs: 35_000 });
    expect([held.deadlineMs, held.loss.reason]).toEqual([30_000, "expired"]);
    grant.deadlineMs = 60_000;
    expect([held.deadlineMs, held.loss.reason]).toEqual([36_000, "max_hold"]);
  });

  it("warns once, is not renewed any more then, and is due at its end", () => {
    const { held } = makeHold({ graceMs: 5_000 });
    expect(held.warn()).toBe(true);
    expect(held.warn()).toBe(false);
    expect(held.renews).toBe(false);
    held.plan();
    expect(held.dueMs).toBe(30_000);
  });

  it("is due for its warning before a renewal that would come too late", () => {
    const { held } = makeHold({ graceMs: 14_000, ttlMs: 30_000 });
    held.renewMs = 20_000;
    held.plan();
    expect(held.dueMs).toBe(16_000);
  });
});
