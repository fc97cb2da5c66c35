import type { LockView, Meta } from "../contract/store.js";
import type { Space } from "../rules/name.js";
import type { LockPage, LockRow, MetaView, Totals } from "./message.js";

/** Which locks a page shows. */
interface LockSearch {
  readonly prefix: string;
  /** Null: all of them. */
  readonly space: Space | null;
  readonly offset: number;
}

/** How many locks one page shows. */
const PAGE_SIZE = 100;

export const NO_TOTALS: Totals = {
  locks: 0,
  held: 0,
  waiters: 0,
  contended: 0,
  longestWaitMs: 0,
  late: 0,
  isPartial: false,
};

/** The locks of one look: those with the longest waits first, then those held for longest. */
export class Snapshot {
  readonly totals: Totals;
  readonly #rows: readonly LockRow[];

  constructor(rows: LockRow[], late: number, isPartial: boolean) {
    this.#rows = rows.sort(byUrgency);
    let held = 0;
    let waiters = 0;
    let contended = 0;
    for (const row of rows) {
      if (row.holders > 0) held += 1;
      if (row.waiters > 0) contended += 1;
      waiters += row.waiters;
    }
    const longestWaitMs = rows[0]?.longestWaitMs ?? 0;
    this.totals = { locks: rows.length, held, waiters, contended, longestWaitMs, late, isPartial };
  }

  /** The page at `offset`; the last page where there are fewer locks. */
  page({ prefix, space, offset }: LockSearch): LockPage {
    const isSought = (row: LockRow): boolean =>
      (space === null || row.space === space) && row.name.startsWith(prefix);
    const all = prefix === "" && space === null ? this.#rows : this.#rows.filter(isSought);
    const last = Math.max(0, Math.ceil(all.length / PAGE_SIZE) - 1) * PAGE_SIZE;
    const start = Math.min(offset - (offset % PAGE_SIZE), last);
    return { rows: all.slice(start, start + PAGE_SIZE), offset: start, total: all.length };
  }
}

/** The line of a lock in the list; `isLate` says that one of its holders is. */
export function rowOf(view: LockView, isLate: boolean): LockRow {
  const { space, name, holders, waiters, mark } = view;
  const [first] = holders;
  return {
    space,
    name,
    kind: kindOf(view),
    holder: first ? nameOf(first.meta) : mark ? nameOf(mark.meta) : "",
    holders: holders.length,
    waiters: waiters.length,
    longestWaitMs: waiters.reduce((most, { waitedMs }) => Math.max(most, waitedMs), 0),
    heldMs: first?.heldMs ?? null,
    remainingMs: holders.reduce<number | null>(
      (least, { remainingMs }) => Math.min(least ?? remainingMs, remainingMs),
      null,
    ),
    isLate,
  };
}

/** `lock`, `shared`, `slots 2/3`, `election`, `once`. */
export function kindOf({ space, holders }: LockView): string {
  if (space !== "lock") return space;
  const [holder] = holders;
  if (!holder || holder.mode === "exclusive") return "lock";
  return holder.limit === null ? "shared" : `slots ${holders.length}/${holder.limit}`;
}

function byUrgency(a: LockRow, b: LockRow): number {
  return (
    b.longestWaitMs - a.longestWaitMs ||
    (b.heldMs ?? -1) - (a.heldMs ?? -1) ||
    (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
  );
}

/** Meta is written by other programs and may be long; the page shows its beginning. */
const MAX_TEXT = 400;
const MAX_FIELDS = 24;

/** The meta as text: it may be any JSON. */
export function whoOf({ label, host, pid, ...more }: Meta): MetaView {
  const fields = Object.entries(more).slice(0, MAX_FIELDS);
  return {
    label: textOf(label),
    host: textOf(host),
    pid: textOf(pid),
    more: fields.map(([key, value]) => [cut(key), textOf(value)] as const),
  };
}

/** `backup.sh on web1 (pid 4711)`; empty where the meta says nothing. */
export function nameOf({ label, host, pid }: Meta): string {
  const where = host === undefined ? "" : `on ${textOf(host)}`;
  const process = pid === undefined ? "" : `(pid ${textOf(pid)})`;
  return [textOf(label), where, process].filter(Boolean).join(" ");
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return cut(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`;
}
