import type { Language } from "../languages/language.js";

/** The prices as they are kept in results.json. */
export interface Price {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly unit: string;
  readonly rows: readonly PriceRow[];
}

export interface PriceRow {
  readonly name: string;
  readonly median: number;
  /** Half of the middle half of all rounds, as a part of the median. */
  readonly spread: number;
}

/** When and where prices were taken. */
export interface Taken {
  readonly takenAt: string;
  readonly machine: string;
  /** The load of the machine before and after, in processes that want a core. */
  readonly load: { readonly before: number; readonly after: number };
}

export interface Prices extends Taken {
  readonly versions: Readonly<Record<string, string>>;
  readonly prices: readonly Price[];
}

/** The table of one price, in Markdown. */
export function priceTable(price: Price, taken: Taken, { say, measured }: Language): string {
  const { title, about, unit, rows } = price;
  const [first] = rows;
  const lines = rows.map((row) => {
    const spread = `${Math.round(row.spread * 100)} %`;
    const multiple = first ? (comparison(row, first) ?? say("within the spread")) : "";
    return `| ${[say(row.name), figure(row.median), spread, multiple].join(" | ")} |`;
  });
  return `${measured(say(title), say(about), taken)}

| | ${[unit, "spread", "× the first"].map(say).join(" | ")} |
|---|---:|---:|---:|
${lines.join("\n")}`;
}

/** Null for a difference within the spread of both rows: it was not measured. */
function comparison(row: PriceRow, first: PriceRow): string | null {
  if (row === first) return "1";
  const isApart =
    Math.abs(row.median - first.median) > row.median * row.spread + first.median * first.spread;
  return isApart ? figure(row.median / first.median) : null;
}

function figure(value: number): string {
  return value >= 100
    ? Math.round(value).toLocaleString("en")
    : String(Number(value.toPrecision(2)));
}
