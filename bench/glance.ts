import type { Result } from "./results.js";
import { figure } from "./table.js";

type Column = readonly [title: string, ...questions: string[]];

/** The figures that most readers look for, and the questions that have them. */
const COLUMNS: readonly Column[] = [
  ["acquire and release, µs", "uncontended"],
  ["the same at once, pairs/s", "many-names"],
  ["handoff to another process, ms", "handoff"],
  ["one busy name, grants/s", "one-name", "contention"],
];

/** A row for each store, with the figures of Holdfast. */
export function glance(all: readonly Result[]): readonly string[][] {
  const stores = [...new Set(all.map(({ question }) => question.store))];
  const rows = stores.map((store) => {
    const own = all.filter(({ question }) => question.store === store);
    return [store, ...COLUMNS.map((column) => cell(own, column))];
  });
  return [["store", ...COLUMNS.map(([title]) => title)], ...rows];
}

function cell(own: readonly Result[], [title, ...questions]: Column): string {
  const found = questions.flatMap((name) => {
    const result = own.find(({ question }) => question.name === name);
    const ours = result?.standings.find((one) => one.name === "holdfast");
    return result && ours ? [inUnit(ours.median, result.question.unit, title)] : [];
  });
  return found[0] ?? "";
}

/** A store in this process counts pairs in a second instead of their time. */
function inUnit(value: number, unit: string, title: string): string {
  return figure(unit === "pairs/s" && title.endsWith("µs") ? 1e6 / value : value);
}
