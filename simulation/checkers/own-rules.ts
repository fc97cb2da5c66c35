import type { Entry } from "../history.js";
import type { Violation } from "./violation.js";

/** No call ends because Holdfast found one of its own rules broken. */
export function checkOwnRules(entries: readonly Entry[]): Violation[] {
  return entries.flatMap((entry) => {
    if (entry.type !== "refused" || entry.reason !== "HF_INTERNAL") return [];
    const { lease, atMs } = entry;
    const message = `${lease} ended by an assertion (HF_INTERNAL)`;
    return [{ checker: "own rules", message, name: null, fromMs: atMs, toMs: atMs }];
  });
}
