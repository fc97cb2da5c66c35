import fc from "fast-check";
import { expect, it } from "vitest";
import { check } from "../../test/fixtures/property.js";
import { difference, withoutPreface } from "./difference.js";

const side = (lines: ReturnType<typeof difference>, sign: "-" | "+"): string[] =>
  lines.filter((line) => line.sign === " " || line.sign === sign).map(({ text }) => text);

it("gives each line of both texts once, in its order", () => {
  const text = fc.array(fc.constantFrom("a", "b", "c", "{", "}"), { minLength: 1 });
  check(
    fc.property(text, text, (before, after) => {
      const lines = difference(before.join("\n"), after.join("\n"));
      expect(side(lines, "-")).toEqual(before);
      expect(side(lines, "+")).toEqual(after);
    }),
  );
});

it("says nothing of lines that stay", () => {
  const signs = difference("a\nb\nc\n", "a\nx\nc\n").map(({ sign, text }) => sign + text);
  expect(signs).toEqual([" a", "-b", "+x", " c"]);
  expect(difference("a\nb\n", "a\nb\n").map(({ sign }) => sign)).toEqual([" ", " "]);
});

it("leaves the comment at the top of a program out", () => {
  expect(withoutPreface("/**\n * Rung 1.\n */\nimport x;\n/** y */\n")).toBe(
    "import x;\n/** y */\n",
  );
  expect(withoutPreface("import x;\n")).toBe("import x;\n");
});
