/**
 * First come, first served: whoever is handed the lock from the queue was not overtaken by anyone
 * who came later, while the store had no reason to think its process dead. That a waiter was served
 * from its place proves that it stood there all the time: one that had lost its place would have
 * asked anew.
 */
import type { Entry, EntryOf } from "../history.js";
import type { Violation } from "./violation.js";

interface Place {
  readonly queued: EntryOf<"queued">;
  overtakenBy: EntryOf<"granted"> | null;
}

/** The queue of one name. */
class Line {
  readonly places = new Map<string, Place>();
  readonly suspects = new Set<string>();
}

export function checkFifo(entries: readonly Entry[]): Violation[] {
  const violations: Violation[] = [];
  const lines = new Map<string, Line>();
  for (const entry of entries) {
    if (entry.type === "forgot") lines.clear();
    if (!("name" in entry) || "lease" in entry) continue;
    const line = lines.get(entry.name) ?? new Line();
    lines.set(entry.name, line);
    const violation = advance(line, entry);
    if (violation) violations.push(violation);
  }
  return violations;
}

function advance(line: Line, entry: Exclude<Extract<Entry, { name: string }>, { lease: string }>) {
  switch (entry.type) {
    case "queued":
      // Whoever is queued once more had been dropped: it stands at the end now.
      line.places.delete(entry.owner);
      line.places.set(entry.owner, { queued: entry, overtakenBy: null });
      return null;
    case "withdrawn":
      line.places.delete(entry.owner);
      return null;
    case "suspected":
      line.suspects.add(entry.client);
      return null;
    case "cleared":
      line.suspects.delete(entry.client);
      return null;
    case "granted":
      return grant(line, entry);
    default:
      return null;
  }
}

function grant(line: Line, granted: EntryOf<"granted">): Violation | null {
  const place = line.places.get(granted.owner);
  line.places.delete(granted.owner);
  for (const other of line.places.values()) {
    if (place && other.queued.atMs >= place.queued.atMs) break;
    if (!line.suspects.has(other.queued.client)) other.overtakenBy ??= granted;
  }
  if (!granted.isHandoff || !place?.overtakenBy) return null;
  const { owner, name } = granted;
  const { overtakenBy } = place;
  return {
    checker: "FIFO",
    message: `${overtakenBy.owner} got "${name}" before ${owner}, who had queued before it`,
    name,
    fromMs: place.queued.atMs,
    toMs: granted.atMs,
  };
}
