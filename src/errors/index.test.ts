import { describe, expect, it, vi } from "vitest";
import * as errors from "./index.js";

/** The module once more, as a second installed copy of the package would load it. */
vi.resetModules();
const copy = await import("./index.js");

const {
  AcquireTimeoutError,
  ClosedError,
  HoldfastError,
  InvalidOptionError,
  LeaseLostError,
  StoreError,
  UnsupportedError,
} = errors;

function samples(from: typeof errors): Record<string, errors.HoldfastError> {
  const about = { lockName: "x", store: "memory" };
  return {
    InvalidOptionError: new from.InvalidOptionError("ttlMs", -1, "must be positive"),
    AcquireTimeoutError: new from.AcquireTimeoutError(5, null, about),
    LeaseLostError: new from.LeaseLostError("expired", about),
    StoreError: new from.StoreError("It failed.", { outcome: "unknown", ...about }),
    UnsupportedError: new from.UnsupportedError("No.", about),
    ClosedError: new from.ClosedError(about),
    InternalError: new from.InternalError("one is one").about("x", "memory"),
  };
}

const kinds = Object.keys(samples(errors)) as (keyof typeof errors &
  keyof ReturnType<typeof samples>)[];
const classOf = (from: typeof errors, kind: string): (new () => unknown) =>
  from[kind as "ClosedError"] as new () => unknown;

describe("every error", () => {
  it.each(kinds)("%s is told by instanceof, in and across two copies of the package", (kind) => {
    expect(copy.HoldfastError).not.toBe(HoldfastError);
    for (const from of [errors, copy]) {
      const error = samples(from)[kind];
      expect(error).toBeInstanceOf(Error);
      for (const to of [errors, copy]) {
        expect(error).toBeInstanceOf(to.HoldfastError);
        for (const other of kinds) {
          expect(error instanceof classOf(to, other)).toBe(other === kind);
        }
      }
    }
  });

  it("has a literal code, a name, and says of which lock and store", () => {
    const made = samples(errors);
    expect(Object.values(made).map(({ code }) => code)).toEqual([
      "HF_INVALID_OPTION",
      "HF_ACQUIRE_TIMEOUT",
      "HF_LEASE_LOST",
      "HF_STORE",
      "HF_UNSUPPORTED",
      "HF_CLOSED",
      "HF_INTERNAL",
    ]);
    for (const [kind, error] of Object.entries(made)) {
      expect(error.name).toBe(kind);
      expect(String(error)).toContain(`${kind}: `);
      if (kind !== "InvalidOptionError") {
        expect(error).toMatchObject({ lockName: "x", store: "memory" });
      }
    }
  });

  it("is no instance where there is no brand", () => {
    for (const odd of [null, undefined, 1, "text", {}, new Error("plain"), { code: "HF_STORE" }]) {
      expect(odd instanceof HoldfastError).toBe(false);
      expect(odd instanceof StoreError).toBe(false);
    }
  });

  it("carries its cause, and none where there is none", () => {
    const cause = new Error("socket");
    const error = new StoreError("It failed.", { outcome: "unknown", cause });
    expect(error.cause).toBe(cause);
    expect("cause" in new ClosedError()).toBe(false);
  });

  it("shows no brand when it is printed or copied", () => {
    expect(Object.keys(new ClosedError())).not.toContain("brand");
    expect(Object.getOwnPropertySymbols({ ...new ClosedError() })).toEqual([]);
  });
});

describe("a message", () => {
  it("of a time-out says what, who and what to do", () => {
    const meta = { host: "web-1", pid: 42, label: "backup" };
    const holder = { token: 7n, heldMs: 1_234.5, meta };
    const { message } = new AcquireTimeoutError(5_000, holder, { lockName: "x" });
    for (const part of [
      '"x"',
      "5000 ms",
      "backup",
      "web-1",
      "42",
      "token 7",
      "1235 ms",
      "waitMs",
    ]) {
      expect(message).toContain(part);
    }
  });

  it.each(["expired", "replaced", "missing", "revoked", "session_ended", "max_hold"] as const)(
    "of a loss says why: %s",
    (reason) => {
      const error = new LeaseLostError(reason, {
        lockName: "x",
        token: 7n,
        detail: "stuck deploy",
      });
      expect(error).toMatchObject({ reason, token: 7n, value: undefined });
      expect(error.message).toContain('"x"');
      expect(error.message).toContain("stuck deploy");
      expect(error.message).not.toContain("undefined");
    },
  );

  it("of an option shows the value, within bounds", () => {
    const shown = (value: unknown): string => new InvalidOptionError("o", value, "rule").message;
    expect(shown(5n)).toContain("5n");
    expect(shown(Number.NaN)).toContain("NaN");
    expect(shown(undefined)).toContain("undefined");
    expect(shown("text")).toContain('"text"');
    expect(shown({ n: 1n })).toContain("[object Object]");
    expect(shown("x".repeat(10_000)).length).toBeLessThan(150);
    expect(shown(Symbol("s"))).toContain("Symbol(s)");
  });
});

describe("a store error", () => {
  it("may pass unless it says otherwise", () => {
    expect(new StoreError("m", { outcome: "unknown" }).retryable).toBe(true);
    const final = new StoreError("m", { outcome: "not_applied", retryable: false });
    expect(final).toMatchObject({ retryable: false, outcome: "not_applied" });
  });

  it("of too few replicas is one of its kind, and says how many there were", () => {
    for (const from of [errors, copy]) {
      const error = new from.ReplicationError(2, 1, 500, { lockName: "x" });
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toBeInstanceOf(errors.ReplicationError);
      expect(error).toMatchObject({ asked: 2, acknowledged: 1, timeoutMs: 500, lockName: "x" });
      expect(error.message).toContain("1 of 2 replicas");
    }
    const plain = new StoreError("m", { outcome: "unknown" });
    expect(plain).not.toBeInstanceOf(errors.ReplicationError);
  });

  it("is told of the lock it was about, and stays what it was", () => {
    const cause = new Error("socket");
    const error = new StoreError("It failed.", { outcome: "not_applied", cause });
    const told = error.about("x", "memory");
    expect(told).toBeInstanceOf(StoreError);
    expect(told).toMatchObject({ lockName: "x", store: "memory", outcome: "not_applied" });
    expect(told.message).toBe('Lock "x": It failed.');
    expect([told.code, told.name, told.cause]).toEqual(["HF_STORE", "StoreError", cause]);
    expect(error.lockName).toBeUndefined();
    expect(told.about("y", "other")).toBe(told);
  });

  it("of another kind is still a store error, by its own brand", () => {
    class OddError extends StoreError {
      static override readonly brand: string = "OddError";
    }
    const odd = new OddError("m", { outcome: "unknown" });
    expect(odd).toBeInstanceOf(OddError);
    expect(odd).toBeInstanceOf(StoreError);
    expect(odd.name).toBe("OddError");
    expect(new StoreError("m", { outcome: "unknown" })).not.toBeInstanceOf(OddError);
    expect(new UnsupportedError("m")).not.toBeInstanceOf(StoreError);
  });
});
