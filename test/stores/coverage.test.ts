import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const stores = new URL("../../src/stores/", import.meta.url);
const names = readdirSync(stores).filter((name) => existsSync(new URL(`${name}/index.ts`, stores)));

describe("every store", () => {
  it("exists", () => expect(names).toContain("memory"));

  it.each(names)("has a test file: %s", (name) => {
    const suite = new URL(`../${name}/conformance.test.ts`, import.meta.url);
    expect(existsSync(suite), `test/${name}/conformance.test.ts is missing`).toBe(true);
    expect(readFileSync(suite, "utf8")).toMatch(/^ *runConformance\(/m);
  });
});
