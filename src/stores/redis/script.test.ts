import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const read = (file: string): string => readFileSync(pathOf(file), "utf8");

describe("the script", () => {
  it("is what its sources say, and their headers are true", () => {
    const check = [pathOf("../../../scripts/embed-lua.mjs"), "--check"];
    expect(() => execFileSync(process.execPath, check, { stdio: "pipe" })).not.toThrow();
  });

  it("does not compile with a field that its record does not have", async () => {
    const { readRecords, withPlaces } = await import(pathOf("../../../scripts/lua-records.mjs"));
    const records = readRecords("records.lua", "SUMS = {\n  kind = 1,\n  bound = 16,\n}\n");
    const lua = (use: string): string =>
      withPlaces("state.lua", `local a\nsub(a, ${use})`, records);
    expect(lua("SUMS.bound")).toBe("local a\nsub(a, 2, 17)");
    expect(lua("SUMS.kind.to.bound")).toBe("local a\nsub(a, 1, 17)");
    for (const wrong of ["SUMS.bond", "SUM.bound", "SUMS.kind.to.last", "SUMS.rest.size"]) {
      expect(() => lua(wrong)).toThrow(`state.lua:2: no record has ${wrong}`);
    }
    expect(() => readRecords("records.lua", "SUMS = {\n  kind = NONE,\n}\n")).toThrow(
      "records.lua:2",
    );
  });

  it("calls nothing that the documented rights leave out", () => {
    const [line = ""] = /^ACL SETUSER .*$/m.exec(read("../../../docs/stores/redis.md")) ?? [];
    const allowed = line.split(" ").filter((word) => word.startsWith("+"));
    const headers = readdirSync(pathOf("./lua")).map((file) => read(`./lua/${file}`));
    const called = headers.flatMap((text) => {
      const [, list = ""] = /^-- commands: (.*(?:\n-- {10}.*)*)/m.exec(text) ?? [];
      return (list.match(/\w+/g) ?? []).map((name) => `+${name.toLowerCase()}`);
    });
    expect(called.length).toBeGreaterThan(20);
    expect(allowed).toEqual(expect.arrayContaining(called));
  });
});
