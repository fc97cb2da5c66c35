import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const page = readFileSync(join(root, "docs/troubleshooting.md"), "utf8");

/** All sources as one text, in which a message that spans several literals is in one piece. */
const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => /\.(ts|sql)$/.test(file) && !file.endsWith(".test.ts"))
  .map((file) => readFileSync(join(root, "src", file), "utf8"))
  .join("\n")
  .replace(/["'`]\s*\+\s*["'`]/g, "");

/** The messages in the first column of every table that begins with one. */
const messages = page.split("\n\n").flatMap((block) => {
  const [head = "", , ...rows] = block.split("\n");
  if (!/^\| (message|answer of a node) \|/.test(head)) return [];
  return rows.map((row) => row.match(/^\| `(.*?)` \|/)?.[1] ?? row);
});

/** The parts of a message that do not differ from case to case. */
const partsOf = (message: string): string[] =>
  message.split("…").filter((part) => /\w{2}/.test(part));

const codes = [...new Set(sources.match(/\bHF_[A-Z_]+\b/g))].sort();

describe("the page for troubleshooting", () => {
  it("has every error code of the source in its table", () => {
    expect(codes.length).toBeGreaterThan(10);
    expect(codes.filter((code) => !page.includes(`\n| \`${code}\` |`))).toEqual([]);
  });

  it("has no code that the source lacks", () => {
    const named = [...new Set(page.match(/\bHF_[A-Z_]+\b/g))].sort();
    expect(named).toEqual(codes);
  });

  it("shows messages as the source has them", () => {
    expect(messages.length).toBeGreaterThan(90);
    const isThere = (part: string): boolean => sources.includes(part);
    expect(messages.filter((message) => !partsOf(message).every(isThere))).toEqual([]);
  });
});
