/** The work of a `once` is not done again while the store keeps its mark. */
import type { Entry, EntryOf } from "../history.js";
import type { Violation } from "./violation.js";

export function checkDoneOnce(entries: readonly Entry[]): Violation[] {
  const done = new Map<string, EntryOf<"done">>();
  const violations: Violation[] = [];
  for (const entry of entries) {
    if (entry.type === "done") done.set(entry.name, entry);
    if (entry.type !== "held") continue;
    const before = done.get(entry.name);
    if (!before || entry.atMs >= before.untilMs) continue;
    violations.push({
      checker: "done once",
      message: `${entry.lease} repeats the work of "${entry.name}" that ${before.lease} did`,
      name: entry.name,
      fromMs: before.atMs,
      toMs: entry.atMs,
    });
  }
  return violations;
}
