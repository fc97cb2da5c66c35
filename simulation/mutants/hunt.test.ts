import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { plant } from "./hunt.js";

let build: string;
const read = (file: string): string => readFileSync(join(build, "src", file), "utf8");

beforeEach(() => {
  build = mkdtempSync(join(tmpdir(), "holdfast-plant-"));
  mkdirSync(join(build, "src"));
  writeFileSync(join(build, "src/a.js"), "return $1 + 1;\nreturn 2;\n");
  writeFileSync(join(build, "src/b.js"), "return 3;\n");
});

afterEach(() => rmSync(build, { recursive: true }));

describe("a mutant", () => {
  const edit = { file: "a.js", find: "return 2;", replace: "return '$&';" };

  it("is planted where its text is, word for word", () => {
    expect(plant({ title: "two", ...edit }, build)).toBeNull();
    expect(read("a.js")).toBe("return $1 + 1;\nreturn '$&';\n");
  });

  it("takes along what has to go with it", () => {
    const also = { file: "b.js", find: "3", replace: "4" };
    expect(plant({ title: "two", ...edit, also }, build)).toBeNull();
    expect(read("b.js")).toBe("return 4;\n");
  });

  it.each([
    ["return", 2],
    ["gone", 0],
  ])("is not planted where '%s' is %d times", (find, count) => {
    const problem = `two: the text to replace is ${count} times in a.js, not once`;
    expect(plant({ ...edit, title: "two", find }, build)).toBe(problem);
  });
});
