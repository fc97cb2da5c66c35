import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../test/fixtures/property.js";
import { compareNames, keyOf, MAX_NAME_BYTES, nameProblem, type Space, splitKey } from "./name.js";

const space = fc.constantFrom<Space>("lock", "election", "once");
const name = fc.string({ unit: "binary", minLength: 1, maxLength: 40 });

describe("nameProblem", () => {
  it("takes any well-formed string of up to 512 bytes", () => {
    check(
      fc.property(name, (one) => {
        expect(nameProblem(one)).toBeNull();
      }),
    );
    for (const odd of [" ", "a/b", "a\u0000b", "{tag}", "l:x", "\u{1f512}", '"', "*", "..", "é"]) {
      expect(nameProblem(odd)).toBeNull();
    }
  });

  it.each([
    ["no string", 42, "must be a string"],
    ["nothing", undefined, "must be a string"],
    ["the empty string", "", "must not be empty"],
    ["a lone high surrogate", "a\ud800b", "must be well-formed unicode"],
    ["a lone low surrogate", "\udc00", "must be well-formed unicode"],
    ["a pair the wrong way round", "\udc00\ud800", "must be well-formed unicode"],
  ])("refuses %s", (_, value, rule) => {
    expect(nameProblem(value)).toBe(rule);
  });

  it("counts bytes, not characters", () => {
    expect(nameProblem("a".repeat(MAX_NAME_BYTES))).toBeNull();
    expect(nameProblem("a".repeat(MAX_NAME_BYTES + 1))).toBe("must have at most 512 bytes");
    expect(nameProblem("€".repeat(170))).toBeNull();
    expect(nameProblem("€".repeat(171))).toBe("must have at most 512 bytes");
    expect(nameProblem("\u{1f512}".repeat(129))).toBe("must have at most 512 bytes");
  });
});

describe("keyOf", () => {
  it("gives no two (space, name) the same key, and can be undone", () => {
    check(
      fc.property(space, name, space, name, (spaceA, a, spaceB, b) => {
        expect(splitKey(keyOf(spaceA, a))).toEqual({ space: spaceA, name: a });
        expect(keyOf(spaceA, a) === keyOf(spaceB, b)).toBe(spaceA === spaceB && a === b);
      }),
    );
  });

  it("keeps prefixes of names prefixes of keys, within a space", () => {
    check(
      fc.property(space, name, name, (where, a, b) => {
        expect(keyOf(where, a + b).startsWith(keyOf(where, a))).toBe(true);
      }),
    );
    expect(keyOf("lock", "o:x").startsWith(keyOf("once", ""))).toBe(false);
  });
});

describe("compareNames", () => {
  it("orders by bytes, where UTF-16 would differ", () => {
    const astral = "\u{1f512}";
    const high = "\uff5e";
    expect(astral < high).toBe(true);
    expect(compareNames(astral, high)).toBeGreaterThan(0);
    expect([astral, "b", high, "a", "é", "B"].sort(compareNames)).toEqual([
      "B",
      "a",
      "b",
      "é",
      high,
      astral,
    ]);
  });

  it("is a total order", () => {
    check(
      fc.property(name, name, (a, b) => {
        expect(Math.sign(compareNames(a, b))).toBe(0 - Math.sign(compareNames(b, a)));
        expect(compareNames(a, b) === 0).toBe(a === b);
      }),
    );
  });
});
