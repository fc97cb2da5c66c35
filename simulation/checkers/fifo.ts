/**
 * First come, first served: no later waiter overtook a waiter that is granted the lock.
 *
 * Excused are:
 * - a grant while the client of the earlier waiter was unresponsive: the store passes over clients
 *   that did not confirm an offer, or cannot be reached;
 * - a waiter that lost its place, because it withdrew, its client was silent for too long, or the
 *   store forgot the queue: it is at the end when it asks again.
 */
import type { Entry, EntryOf } from "../history.js";
import type { Violation } from "./violation.js";

interface Place {
  readonly queued: EntryOf<"queued">;
  overtakenBy: EntryOf<"granted"> | null;
}

/** The queue of one name. */
class Queue {
  readonly places = new Map<string, Place>();
  readonly unresponsive = new Set<string>();
}

export function checkFifo(entries: readonly Entry[]): Violation[] {
  const violations: Violation[] = [];
  const queues = new Map<string, Queue>();
  for (const entry of entries) {
    if (entry.type === "forgot") queues.clear();
    if (!("name" in entry) || "lease" in entry) continue;
    const queue = queues.get(entry.name) ?? new Queue();
    queues.set(entry.name, queue);
    const violation = advance(queue, entry);
    if (violation) violations.push(violation);
  }
  return violations;
}

function advance(
  queue: Queue,
  entry: Exclude<Extract<Entry, { name: string }>, { lease: string }>,
) {
  switch (entry.type) {
    case "queued":
      queue.places.set(entry.owner, { queued: entry, overtakenBy: null });
      return null;
    case "withdrawn":
    case "dropped":
      queue.places.delete(entry.owner);
      return null;
    case "unresponsive":
      queue.unresponsive.add(entry.client);
      return null;
    case "responsive":
      queue.unresponsive.delete(entry.client);
      return null;
    case "granted":
      return grant(queue, entry);
    default:
      return null;
  }
}

function grant(queue: Queue, granted: EntryOf<"granted">): Violation | null {
  const place = queue.places.get(granted.owner);
  for (const other of queue.places.values()) {
    if (other === place) break;
    if (!queue.unresponsive.has(other.queued.client)) other.overtakenBy ??= granted;
  }
  queue.places.delete(granted.owner);
  if (!place?.overtakenBy) return null;
  const { owner, name } = granted;
  const { overtakenBy } = place;
  return {
    checker: "FIFO",
    message: `${overtakenBy.owner} got "${name}" before ${owner}, which had queued earlier`,
    name,
    fromMs: place.queued.atMs,
    toMs: granted.atMs,
  };
}
