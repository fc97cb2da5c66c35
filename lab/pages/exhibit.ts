import { expectedFailure } from "../expected.js";
import type { History } from "../history.js";
import type { Subject } from "../subjects/subject.js";
import { isGood } from "../timeline/svg.js";

/** A program of the ladder: its path in the project, and its text. */
export interface Program {
  readonly path: string;
  readonly source: string;
}

/** The program of a trial, and the subject that does not fail where it fails. */
export interface Exhibit {
  readonly program?: Program;
  /** The next rung that holds against the fault. */
  readonly cure?: Program;
  /** Where no rung does: the store of Holdfast that holds. */
  readonly store?: { readonly title: string; readonly command: string };
}

type Row = Pick<Subject, "id" | "title" | "family" | "program">;

/** A cell of the matrix, as far as it matters here. */
interface Cell {
  readonly subject: Row;
  readonly fault: { readonly id: string };
}

/** The families whose failures are known in advance. */
const OURS: readonly string[] = ["ladder", "holdfast"];

type Trial = Pick<History, "subject" | "fault" | "verdict">;

/**
 * The next subject that holds where a rung fails. `cells` are all cells of the lab, the rungs from
 * the lowest to the highest and the stores after them. A rung that the fault cannot happen to is no
 * cure, and has no cell.
 */
export function cureOf(
  { subject, fault, verdict }: Trial,
  cells: readonly Cell[],
): Row | undefined {
  const column = cells.filter((cell) => cell.fault.id === fault).map((cell) => cell.subject);
  const at = column.findIndex(({ id }) => id === subject);
  if (isGood(verdict.kind) || column[at]?.program === undefined) return undefined;
  return column.slice(at + 1).find((one) => {
    return OURS.includes(one.family) && expectedFailure(one.id, fault) === null;
  });
}

export function exhibitOf(
  trial: Trial,
  cells: readonly Cell[],
  read: (path: string) => string,
): Exhibit {
  const programOf = (path: string): Program => ({ path, source: read(path) });
  const { subject, fault } = trial;
  const path = cells.find((cell) => cell.subject.id === subject)?.subject.program;
  if (path === undefined) return {};
  const program = programOf(path);
  const safe = cureOf(trial, cells);
  if (!safe) return { program };
  if (safe.program !== undefined) return { program, cure: programOf(safe.program) };
  return { program, store: { title: safe.title, command: `npm run lab -- ${safe.id} ${fault}` } };
}
