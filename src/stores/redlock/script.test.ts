import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const read = (file: string): string => readFileSync(pathOf(file), "utf8");

it("the script calls only commands of the documented rights", () => {
  const [line = ""] = /^ACL SETUSER .*$/m.exec(read("../../../docs/stores/redlock.md")) ?? [];
  const allowed = line.split(" ").filter((word) => word.startsWith("+"));
  const called = readdirSync(pathOf("./lua")).flatMap((file) => {
    const [, list = ""] = /^-- commands: (.*(?:\n-- {10}.*)*)/m.exec(read(`./lua/${file}`)) ?? [];
    return (list.match(/\w+/g) ?? []).map((name) => `+${name.toLowerCase()}`);
  });
  expect(called.length).toBeGreaterThan(20);
  expect(allowed).toEqual(expect.arrayContaining(called));
});
