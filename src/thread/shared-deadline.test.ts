import { describe, expect, it } from "vitest";
import { claimOf } from "../../test/fixtures/ledger-server.js";
import type { Grant } from "../store.js";
import { SharedDeadline } from "./shared-deadline.js";

function grantUntil(deadlineMs: number): Grant {
  return { type: "granted", claim: claimOf("a"), token: 1n, span: 1, deadlineMs, locator: null };
}

describe("SharedDeadline", () => {
  it("follows the grant, and is never later than it", () => {
    const grant = grantUntil(1_000.00049);
    const theirs = new SharedDeadline(SharedDeadline.of(grant).memory);
    expect(theirs.ms).toBe(1_000);
    grant.deadlineMs = 86_400_123.4567;
    expect(theirs.ms).toBe(86_400_123.456);
    expect(grant.deadlineMs).toBe(86_400_123.4567);
    expect(theirs.isOver).toBe(false);
  });

  it("shows that the store has ended the grant", () => {
    const grant = grantUntil(1_000);
    const theirs = new SharedDeadline(SharedDeadline.of(grant).memory);
    grant.deadlineMs = Number.NEGATIVE_INFINITY;
    expect(theirs.isOver).toBe(true);
    expect(theirs.ms).toBe(0);
  });

  it("stays over after its end, whatever the store still hears", () => {
    const grant = grantUntil(1_000);
    const shared = SharedDeadline.of(grant);
    shared.end();
    grant.deadlineMs = 2_000;
    expect(new SharedDeadline(shared.memory).isOver).toBe(true);
  });

  it("has room for the longest lease", () => {
    const shared = SharedDeadline.of(grantUntil(Number.POSITIVE_INFINITY));
    expect(shared.ms).toBeGreaterThan(100 * 366 * 86_400_000);
  });
});
