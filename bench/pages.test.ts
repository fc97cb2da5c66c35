import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { capacityPage } from "./capacity.js";
import { CostBook } from "./cost-book.js";
import { meaningOf } from "./meaning.js";
import { missedGoals, page } from "./page.js";
import { keptResults } from "./results.js";
import { summary } from "./summary.js";

const docs = join(import.meta.dirname, "..", "docs");
const results = keptResults(join(import.meta.dirname, "results"));

const read = (file: string): string => readFileSync(join(docs, file), "utf8");

// After a change of a page or of the results: npm run bench:report.
it("has docs/capacity.md as the results give it", () => {
  const template = readFileSync(join(import.meta.dirname, "capacity.md"), "utf8");
  expect(read("capacity.md")).toBe(capacityPage(template, results));
});

it("has docs/benchmarks.md as the results give it, with the goals at the end", () => {
  const [text, goals = ""] = read("benchmarks.md").split("\n## Goals of the project\n");
  expect(text).toBe(page(results));
  expect(text).not.toMatch(/missed|\bmet\b/);
  // The reasons stand in the questions, which need the packages that they compare.
  const missed = missedGoals(results, () => undefined);
  const lines = missed.split("\n").filter((line) => line.startsWith("- "));
  expect(lines.filter((line) => !goals.includes(line))).toEqual([]);
});

it("has the picture as the results give it", () => {
  expect(read("benchmarks/summary.svg")).toBe(summary(results));
});

it("says what each question means for the reader", () => {
  const names = results.map(({ question }) => question.name);
  expect(names.filter((name) => meaningOf(name) === "")).toEqual([]);
});

/** Figures that are typed in on the pages of the stores, to two digits. */
const REPLICAS = ["holdfast, replicas 1", "holdfast, replicas 0"] as const;
const typedFigures = [
  { store: "redis", text: /took (\S+) × as long/, question: "replicas", of: REPLICAS },
  { store: "redis", text: /once (\S+) × /, question: "replicas-names", of: REPLICAS },
];

it.each(typedFigures)("has a figure as the results give it: $store, $text", (figure) => {
  const { store, text, question, of } = figure;
  const [one, other] = of.map((name) => new CostBook(results).cost(store, question, name));
  const [, typed] = text.exec(read(`stores/${store}.md`).replaceAll("\n", " ")) ?? [];
  const ratio = Number(one) / Number(other);
  expect(Number(typed)).toBe(Number(ratio.toPrecision(2)));
});

const README = [
  { row: "acquire and release: Redis, µs", store: "redis", question: "uncontended" },
  { row: "Postgres, µs", store: "postgres", question: "uncontended" },
  { row: "memory, µs", store: "memory", question: "uncontended", isRate: true },
  { row: "handoff on Redis, ms", store: "redis", question: "handoff" },
  { row: "handoff on Postgres, ms", store: "postgres", question: "handoff" },
];
/** The contestants in the order of the columns. */
const COLUMNS = [
  "holdfast",
  "redlock 5 beta",
  "redis-semaphore",
  "verrou (knex)",
  "advisory-lock",
  "async-mutex",
];

it.each(README)("has the figures of the README as the results give them: $row", (figures) => {
  const { row, store, question, isRate = false } = figures;
  const readme = read("../README.md").split("\n");
  const cells =
    readme
      .find((line) => line.startsWith(`| ${row} |`))
      ?.split(" | ")
      .slice(1) ?? [];
  const typed = cells.map((cell, at) => ({
    name: COLUMNS[at] ?? "",
    cell: cell.replace(" |", ""),
  }));
  const measured = typed.filter(({ cell }) => /^[\d.,]+$/.test(cell));
  expect(measured.length).toBeGreaterThan(1);
  for (const { name, cell } of measured) {
    const value = new CostBook(results).cost(store, question, name);
    const digits = cell.replace(/[.,]|^0\.0*/g, "").length;
    expect(cell.replace(",", "")).toBe(
      `${Number((isRate ? 1e6 / value : value).toPrecision(digits))}`,
    );
  }
});

it("computes no page from a figure that was not measured", () => {
  expect(() => capacityPage("{{redis > uncontended > holdfast > weight}}", results)).toThrow(
    "The results have no figure for redis, uncontended, holdfast, weight.",
  );
});

it("counts three renewals in each ttl, and the memory of both sides", () => {
  const { renewals, serverBytes } = new CostBook(results).sizing(1_000, 30);
  expect(renewals).toBe(100);
  const bytes = new CostBook(results).cost("redis", "footprint-held", "holdfast");
  expect(serverBytes).toBe(1_000 * bytes);
});
