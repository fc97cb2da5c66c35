import { describe, expect, it, vi } from "vitest";
import { claimOf } from "../../test/fixtures/ledger-server.js";
import { ScriptedGrant } from "../../test/fixtures/scripted-store.js";
import type { Loss } from "./store.js";

const REVOKED: Loss = { reason: "revoked", detail: "stuck" };
const EXPIRED: Loss = { reason: "expired", detail: "" };

function grantWith(onEnd: (loss: Loss) => void): ScriptedGrant {
  const grant = new ScriptedGrant(claimOf("a"), 1n, 30_000);
  grant.listener = { onEnd, onRenewal: () => {} };
  return grant;
}

describe("the end of a grant", () => {
  it("is told once, and moves its deadline into the past for good", () => {
    const onEnd = vi.fn();
    const grant = grantWith(onEnd);
    grant.end(REVOKED);
    grant.end(EXPIRED);
    grant.extend(60_000);
    expect(onEnd).toHaveBeenCalledExactlyOnceWith(REVOKED);
    expect([grant.loss, grant.deadlineMs]).toEqual([REVOKED, Number.NEGATIVE_INFINITY]);
  });

  it("that its listener causes again is told once", () => {
    const onEnd = vi.fn(() => grant.end(EXPIRED));
    const grant = grantWith(onEnd);
    grant.end(REVOKED);
    expect(onEnd).toHaveBeenCalledOnce();
    expect(grant.loss).toBe(REVOKED);
  });

  it("cannot be undone by an answer that its listener brings", () => {
    const grant = grantWith(() => grant.extend(60_000));
    grant.end(REVOKED);
    expect(grant.deadlineMs).toBe(Number.NEGATIVE_INFINITY);
  });

  it("needs no listener", () => {
    const grant = new ScriptedGrant(claimOf("a"), 1n, 30_000);
    grant.end(REVOKED);
    expect(grant.loss).toBe(REVOKED);
  });

  it("is complete though its listener throws, whose error is thrown later", () => {
    const later = vi.spyOn(globalThis, "queueMicrotask").mockImplementation(() => {});
    const error = new Error("odd");
    const grant = grantWith(() => {
      throw error;
    });
    grant.end(REVOKED);
    const [[throwLater] = []] = later.mock.calls;
    later.mockRestore();
    expect(grant.deadlineMs).toBe(Number.NEGATIVE_INFINITY);
    expect(throwLater).toThrow(error);
  });
});
