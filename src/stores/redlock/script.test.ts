import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { NODE, RELEASE, VOTE } from "./script.generated.js";

it("the scripts call only commands of the documented rights", () => {
  const page = readFileSync(new URL("../../../docs/stores/redlock.md", import.meta.url), "utf8");
  const [line = ""] = /^ACL SETUSER .*$/m.exec(page) ?? [];
  const allowed = line.split(" ").filter((word) => word.startsWith("+"));
  const calls = [...(VOTE + RELEASE + NODE).matchAll(/\bcall\('([A-Z]+)'/g)];
  const called = new Set(calls.map(([, name = ""]) => `+${name.toLowerCase()}`));
  expect(called.size).toBeGreaterThan(15);
  expect(allowed).toEqual(expect.arrayContaining([...called]));
});
