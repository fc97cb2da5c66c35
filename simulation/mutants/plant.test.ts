import { describe, expect, it } from "vitest";
import type { Change } from "./mutant.js";
import { plant } from "./plant.js";

const CODE = `class Lock {
    // rule: order
    #heap = new Heap((a, b) => a.place < b.place);
    judge(sentMs) {
        // Why it is so.
        // rule: late
        // And why not otherwise.
        if (sentMs > 7 && this.ok) {
            // rule: told
            tell(sentMs, "$&");
        }
        // rule: longest
        const endMs = Math.max(sentMs + 1 - 2, 3);
        // rule: value
        return endMs > 0 ? endMs : -1;
        // rule: nothing
    }
}
`;

const OTHER = "// rule: other\nreport();\n";
const code = new Map(Object.entries({ "deep/a.js": CODE, "b.js": OTHER }));
const plantOne = (rule: string, change: Change) => plant({ title: "bug", rule, change }, code);

describe("a mutant", () => {
  it.each<[rule: string, change: Change, before: string, after: string]>([
    ["order", "swap", "a.place < b.place", "b.place < a.place"],
    ["late", "always", "sentMs > 7 && this.ok", "true"],
    ["late", "never", "sentMs > 7 && this.ok", "false"],
    ["late", { only: 2, of: "&&" }, "sentMs > 7 && this.ok", "(this.ok)"],
    ["told", "drop", 'tell(sentMs, "$&");', ";"],
    ["told", { term: 1, of: "call", becomes: "$ + $" }, "tell(sentMs", "tell(sentMs + sentMs"],
    ["told", { term: 2, of: "call", becomes: "0" }, '"$&"', "0"],
    ["longest", { only: 1, of: "max" }, "Math.max(sentMs + 1 - 2, 3)", "(sentMs + 1 - 2)"],
    ["longest", { term: 3, of: "+", becomes: "9" }, "1 - 2", "1 - 9"],
    [
      "longest",
      { value: "$ / 2" },
      "Math.max(sentMs + 1 - 2, 3)",
      "(Math.max(sentMs + 1 - 2, 3) / 2)",
    ],
    ["value", { only: 2, of: "?:" }, "endMs > 0 ? endMs : -1", "(-1)"],
    ["value", { text: "> 0", becomes: "< 0", why: "" }, "> 0", "< 0"],
    ["value", { becomes: "return 5;", why: "" }, "return endMs > 0 ? endMs : -1;", "return 5;"],
  ])("changes the statement marked '%s': %j", (rule, change, before, after) => {
    expect(CODE).toContain(before);
    const planted = plantOne(rule, change);
    expect(planted.get("deep/a.js")).toBe(CODE.split(before).join(after));
    expect(planted.get("b.js")).toBe(OTHER);
  });

  it("makes several edits where one rule is kept twice", () => {
    const also = [{ rule: "other", change: "drop" }] as const;
    const planted = plant({ title: "bug", rule: "told", change: "drop", also }, code);
    expect(planted.get("deep/a.js")).not.toContain("tell");
    expect(planted.get("b.js")).toBe("// rule: other\n;\n");
  });

  it.each<[rule: string, change: Change, problem: string]>([
    ["missing", "drop", '0 files have the mark "missing", not one.'],
    ["nothing", "drop", 'No statement follows the mark "nothing".'],
    ["late", { only: 1, of: "||" }, 'The marked statement has "||" 0 times, not once.'],
    ["late", { only: 3, of: "&&" }, '"&&" has 2 terms, not 3.'],
    [
      "value",
      { text: "endMs", becomes: "0", why: "" },
      "The marked statement has endMs 2 times, not once.",
    ],
  ])("is refused where its change does not apply: '%s', %j", (rule, change, problem) => {
    expect(() => plantOne(rule, change)).toThrow(problem);
  });
});
