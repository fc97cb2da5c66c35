import { describe, expect, it } from "vitest";
import { claimOf } from "../../test/fixtures/ledger-server.js";
import { ScriptedGrant } from "../../test/fixtures/scripted-store.js";
import type { Grant } from "../contract/store.js";
import { SharedGrant } from "./shared-grant.js";

function grantUntil(deadlineMs: number): Grant {
  return new ScriptedGrant(claimOf("a"), 1n, deadlineMs);
}

describe("SharedGrant", () => {
  it("follows the grant, and is never later than it", () => {
    const grant = grantUntil(1_000.00049);
    const theirs = new SharedGrant(SharedGrant.of(grant).memory);
    expect(theirs.deadlineMs).toBe(1_000);
    grant.deadlineMs = 86_400_123.4567;
    expect(theirs.deadlineMs).toBe(86_400_123.456);
    expect(grant.deadlineMs).toBe(86_400_123.4567);
    expect(theirs.isOver).toBe(false);
  });

  it("shows that the store has ended the grant", () => {
    const grant = grantUntil(1_000);
    const theirs = new SharedGrant(SharedGrant.of(grant).memory);
    grant.deadlineMs = Number.NEGATIVE_INFINITY;
    expect(theirs.isOver).toBe(true);
    expect(theirs.deadlineMs).toBe(0);
  });

  it.each(["the store", "the caller"])("stays over once %s has ended it", (ender) => {
    const grant = grantUntil(1_000);
    const ours = SharedGrant.of(grant);
    const theirs = new SharedGrant(ours.memory);
    (ender === "the store" ? ours : theirs).end();
    grant.deadlineMs = 2_000;
    expect(theirs.isOver).toBe(true);
    expect(theirs.deadlineMs).toBe(0);
  });

  it("shows the terms of a caller that has taken the grant", () => {
    const shared = SharedGrant.of(grantUntil(1_000));
    expect(shared.taken).toBeNull();
    new SharedGrant(shared.memory).take({ ttlMs: 30_000, graceMs: 0 });
    expect(shared.taken).toEqual({ ttlMs: 30_000, graceMs: 0 });
    expect(shared.deadlineMs).toBe(1_000);
  });

  it("has room for the longest lease", () => {
    const shared = SharedGrant.of(grantUntil(Number.POSITIVE_INFINITY));
    expect(shared.deadlineMs).toBeGreaterThan(100 * 366 * 86_400_000);
  });
});
