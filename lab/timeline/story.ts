import type { Entry, History } from "../history.js";
import { duration } from "./scale.js";

/** The history in one sentence, holders and faults: the text alternative of the picture. */
export function story({ lanes, entries, verdict }: History): string {
  const titles = new Map(lanes.map(({ id, title }) => [id, title]));
  const named = (lane: string): string => titles.get(lane) ?? `the ${lane}`;
  const clauses = entries.flatMap((entry) => {
    const clause = clauseOf(entry, named);
    return clause === null ? [] : [`at ${duration(entry.atMs)} ${clause}`];
  });
  return `${[...clauses, `the verdict: ${verdict.text}`].join("; ")}.`;
}

/** Null for a step that the next one tells as well. */
function clauseOf(entry: Entry, named: (lane: string) => string): string | null {
  if (entry.type === "truth") {
    return entry.holder === "ghost" ? "the store has a value that no process knows of" : null;
  }
  const lane = named(entry.lane);
  switch (entry.type) {
    case "believes":
      return `${lane} has the lock`;
    case "refused":
      return `${lane} gives up`;
    case "releases":
      return `${lane} releases it`;
    case "disbelieves":
      return `${lane} knows that it lost the lock`;
    case "writes":
      return `a write of ${lane} is ${entry.isRefused ? "refused" : "accepted"}`;
    case "fault":
      return `a fault hits ${lane}: ${entry.text}`;
    default:
      return null;
  }
}
