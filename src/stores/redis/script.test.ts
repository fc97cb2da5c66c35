import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const read = (file: string): string => readFileSync(pathOf(file), "utf8");

describe("the scripts", () => {
  it("calls nothing that the documented rights leave out", () => {
    const [line = ""] = /^ACL SETUSER .*$/m.exec(read("../../../docs/stores/redis.md")) ?? [];
    const allowed = line.split(" ").filter((word) => word.startsWith("+"));
    const files = readdirSync(pathOf("./lua")).map((file) => read(`./lua/${file}`));
    const called = files.flatMap((text) =>
      [...text.matchAll(/\b(?:call|try|write)\('([A-Z]+)'/g)].map(
        ([, name = ""]) => `+${name.toLowerCase()}`,
      ),
    );
    expect(called.length).toBeGreaterThan(20);
    expect(allowed).toEqual(expect.arrayContaining(called));
  });
});
