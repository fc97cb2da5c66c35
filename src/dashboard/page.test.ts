import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { FILES } from "./page.generated.js";

it("has at most 60 kB, compressed file by file", () => {
  const bytes = [...FILES.values()].reduce((sum, text) => sum + gzipSync(text).length, 0);
  expect(bytes).toBeLessThanOrEqual(60_000);
});

it("loads nothing from elsewhere, and has no code or style in its markup", () => {
  const markup = FILES.get("index.html") ?? "";
  expect(markup).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|style=|javascript:/i);
  for (const [name, text] of FILES) {
    if (name === "licences.txt") continue;
    const addresses = text.match(/\bhttps?:\/\/[\w.]+/g) ?? [];
    // Names of languages, which no browser opens.
    expect(addresses.filter((address) => !address.endsWith("www.w3.org"))).toEqual([]);
    const imports = [...text.matchAll(/(?:from|import) ?["']([^"']+)["']/g)].map(
      ([, from]) => from,
    );
    expect(imports.filter((from) => !FILES.has(from?.replace("./", "") ?? ""))).toEqual([]);
  }
});

it("makes no markup of text", () => {
  for (const [name, text] of FILES) {
    if (!name.endsWith(".js") || name === "preact.js") continue;
    expect(text).not.toMatch(
      /innerHTML|outerHTML|insertAdjacent|dangerously|document\.write|eval\(/,
    );
  }
});

it("carries the licences of the libraries in it", () => {
  expect(FILES.get("licences.txt")).toMatch(/Jason Miller[\s\S]*Apache License/);
});
