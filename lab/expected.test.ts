import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { exceptions } from "./expected.js";
import { faults } from "./faults/all.js";
import { cellsOf } from "./matrix.js";
import { subjects } from "./subjects/all.js";

const DOCS = join(import.meta.dirname, "..", "docs", "stores");

function rowsOf(page: string): string[] {
  const text = readFileSync(join(DOCS, `${page}.md`), "utf8");
  const [, part = ""] = text.split("\n## What survives what\n");
  const [table = ""] = part.split("\n## ");
  return table.split("\n").filter((line) => line.startsWith("| "));
}

const all = Object.entries(exceptions).flatMap(([subject, own]) =>
  Object.entries(own).map(([fault, exception]) => ({ subject, fault, ...exception })),
);

it("each exception of a store has a row in the table of its page", () => {
  const missing = all.filter(({ page, event }) => {
    return !rowsOf(page).some((row) => row.startsWith(`| ${event}`));
  });
  expect(missing).toEqual([]);
});

it("each exception is a cell of a store", () => {
  const cells = cellsOf(subjects, faults)
    .filter(({ subject }) => subject.family === "holdfast")
    .map(({ subject, fault }) => `${subject.id} ${fault.id}`);
  const names = all.map(({ subject, fault }) => `${subject} ${fault}`);
  expect(names.filter((name) => !cells.includes(name))).toEqual([]);
  expect(names.length).toBeGreaterThan(20);
});
