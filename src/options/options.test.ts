import { describe, expect, it } from "vitest";
import type { Traits } from "../contract/store.js";
import { InvalidOptionError, UnsupportedError } from "../errors/index.js";
import { type AcquireOptions, checkCount, checkDuration, resolveOptions } from "./options.js";

const traits: Traits = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 100,
};

const NONE = Number.POSITIVE_INFINITY;

function problem(given: unknown): InvalidOptionError {
  try {
    resolveOptions(given as AcquireOptions, traits);
  } catch (error) {
    if (error instanceof InvalidOptionError) return error;
    throw error;
  }
  throw new Error("it was taken");
}

describe("options", () => {
  it("have the defaults that are written down", () => {
    expect(resolveOptions(undefined, traits)).toMatchObject({
      ttlMs: 30_000,
      renew: true,
      maxHoldMs: NONE,
      graceMs: 0,
      waitMs: 60_000,
      storeTimeoutMs: undefined,
      signal: undefined,
      weight: 1,
      reentrant: false,
      fairness: "bounded",
      maxLocalTurns: 32,
      transferable: false,
    });
  });

  it("are laid over those before, and undefined says nothing", () => {
    const base = resolveOptions({ ttlMs: 5_000, waitMs: 10 }, traits);
    const given = { waitMs: 20, ttlMs: undefined } as unknown as AcquireOptions;
    expect(resolveOptions(given, traits, base)).toMatchObject({ ttlMs: 5_000, waitMs: 20 });
  });

  it("are frozen, and the same object where nothing is given", () => {
    const base = resolveOptions({ ttlMs: 5_000 }, traits);
    expect(Object.isFrozen(base)).toBe(true);
    expect(Object.isFrozen(base.meta)).toBe(true);
    expect(resolveOptions(undefined, traits, base)).toBe(base);
  });

  it.each<[string, unknown[], string]>([
    ["ttlMs", [99, 0, -1, Number.NaN, NONE, 4e12, "30s", null], "at least 100"],
    ["maxHoldMs", [0, -1, Number.NaN, "1", null], "at least 1"],
    ["graceMs", [-1, 15_000, 20_000, Number.NaN, "1", null], "below half of ttlMs (15000)"],
    ["waitMs", [-1, Number.NaN, "1", null], "0 or more"],
    ["storeTimeoutMs", [0, -1, Number.NaN, "1", null], "at least 1"],
    ["weight", [0, -1, 1.5, Number.NaN, NONE, "1", 2 ** 53], "whole number from 1"],
    ["maxLocalTurns", [0, -1, 1.5, Number.NaN, NONE, "1", 1_025, 2 ** 53 - 1], "from 1 to 1024"],
    ["renew", [1, "true", null], "true or false"],
    ["reentrant", [0, "false"], "true or false"],
    ["transferable", [0, "yes"], "true or false"],
    ["fairness", ["fifo", true, null], '"bounded" or "strict"'],
    ["signal", [{}, "abort", null], "AbortSignal"],
    ["meta", ["text", 1, null, [], () => {}], "must be an object"],
  ])("%s is checked, and the error names option, value and rule", (option, values, rule) => {
    for (const value of values) {
      const error = problem({ [option]: value });
      expect(error).toMatchObject({ code: "HF_INVALID_OPTION", option });
      expect(error.value).toBe(value);
      expect(error.rule).toContain(rule);
      expect(error.message).toContain(`Invalid ${option}: `);
      expect(error.message).toContain(rule);
    }
  });

  it("take the bounds themselves", () => {
    const { signal } = new AbortController();
    const given = { ttlMs: 100, graceMs: 49.9, waitMs: 0, maxHoldMs: 1, storeTimeoutMs: 1, signal };
    expect(resolveOptions(given, traits)).toMatchObject(given);
    expect(resolveOptions({ waitMs: NONE, maxHoldMs: NONE }, traits)).toBeDefined();
  });

  it("are checked against each other as a whole", () => {
    const base = resolveOptions({ graceMs: 10_000 }, traits);
    const given = { ttlMs: 15_000 };
    expect(() => resolveOptions(given, traits, base)).toThrow("below half of ttlMs (7500)");
  });

  it.each(["ttl", "timeout", "retries", "TTLMS", "toString", "constructor", "__proto"])(
    "have no %s",
    (option) => {
      const error = problem({ [option]: 1 });
      expect(error.option).toBe(option);
      expect(error.rule).toContain("is no option");
      expect(error.rule).toContain("ttlMs");
    },
  );

  it.each([42, "ttlMs", null, true])("are an object: not %s", (given) => {
    expect(problem(given).option).toBe("options");
  });

  it("ask the store for what it may not have", () => {
    const fixed = { ...traits, transferable: false };
    expect(() => resolveOptions({ transferable: true }, fixed)).toThrow(UnsupportedError);
  });
});

describe("meta", () => {
  it("says who this process is, and what is given goes first", () => {
    const { meta } = resolveOptions({ meta: { label: "backup", shard: 3 } }, traits);
    expect(meta).toMatchObject({ label: "backup", shard: 3, pid: process.pid });
    expect(meta.host).toEqual(expect.any(String));
  });

  it("is a copy: what happens to the original later is not seen", () => {
    const original = { label: "one", deep: { n: 1 } };
    const { meta } = resolveOptions({ meta: original }, traits);
    original.label = "two";
    original.deep.n = 2;
    expect(meta).toMatchObject({ label: "one", deep: { n: 1 } });
  });

  it("must be JSON, and small", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    expect(problem({ meta: circle }).rule).toContain("JSON");
    expect(problem({ meta: { n: 1n } }).rule).toContain("JSON");
    expect(problem({ meta: { toJSON: () => undefined } }).rule).toContain("JSON");
    expect(problem({ meta: { text: "€".repeat(700) } }).rule).toContain("2048 bytes");
  });
});

describe("single numbers", () => {
  it("are checked likewise", () => {
    expect(checkDuration("keepMs", 5, 1)).toBe(5);
    expect(checkCount("limit", 3)).toBe(3);
    for (const odd of [0, -1, Number.NaN, NONE, "5", undefined]) {
      expect(() => checkDuration("keepMs", odd, 1)).toThrow(InvalidOptionError);
      expect(() => checkCount("limit", odd)).toThrow(InvalidOptionError);
    }
  });
});
