import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../../test/fixtures/property.js";
import { compareNames } from "../../rules/name.js";
import { arrayLiteral, fromStored, toStored } from "./stored-text.js";

/** Texts with many of the characters that are escaped. */
const texts = fc.string({ unit: fc.constantFrom("\0", "\u0001", "\u0002", "a", '"', "\\", "ü") });

describe("a stored text", () => {
  it("has no U+0000 and comes back as it was", () => {
    check(
      fc.property(texts, (text) => {
        expect(toStored(text)).not.toContain("\0");
        expect(fromStored(toStored(text))).toBe(text);
      }),
    );
  });

  it("keeps the order and the prefixes of texts", () => {
    check(
      fc.property(texts, texts, (one, other) => {
        const [storedOne, storedOther] = [toStored(one), toStored(other)];
        expect(Math.sign(compareNames(storedOne, storedOther))).toBe(
          Math.sign(compareNames(one, other)),
        );
        expect(storedOne.startsWith(storedOther)).toBe(one.startsWith(other));
      }),
    );
  });
});

it("quotes every word of an array", () => {
  expect(arrayLiteral([])).toBe("{}");
  expect(arrayLiteral(["", "NULL", 'a"b\\c', "{,}", "\0"])).toBe(
    '{"","NULL","a\\"b\\\\c","{,}","\u0001\u0001"}',
  );
});
