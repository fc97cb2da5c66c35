/**
 * First come, first served: no later waiter overtook a waiter that is served from the queue, while
 * its client was no suspect. A waiter that is served from the queue was in the queue all the time:
 * a waiter that lost its place asks again and queues at the end. In a run, followers are served
 * when the store grants the run, if they take their turns. A turn may pass a waiter that has given
 * up and is in the queue still, so such a waiter counts only if it holds later.
 */
import type { Entry, EntryOf } from "../history.js";
import type { Violation } from "./violation.js";

interface Place {
  readonly queued: EntryOf<"queued">;
  overtakenBy: EntryOf<"granted"> | null;
  /** The run in which a follower behind this place took its turn first. */
  passedBy: EntryOf<"granted"> | null;
}

/** The queue of one name. */
class Queue {
  readonly places = new Map<string, Place>();
  readonly suspects = new Set<string>();
  /** By token: notes whom a turn in a run passes, and tells a violation, if the token is used. */
  readonly turns = new Map<bigint, () => void>();
  readonly ifHeld = new Map<bigint, Violation>();
}

export function checkFifo(entries: readonly Entry[]): Violation[] {
  const violations: Violation[] = [];
  const queues = new Map<string, Queue>();
  for (const entry of entries) {
    if (entry.type === "forgot") queues.clear();
    if (!("name" in entry)) continue;
    const queue = queues.get(entry.name) ?? new Queue();
    queues.set(entry.name, queue);
    if ("lease" in entry && entry.type !== "held") continue;
    const violation = advance(queue, entry);
    if (violation) violations.push(violation);
  }
  return violations;
}

function advance(
  queue: Queue,
  entry: Exclude<Extract<Entry, { name: string }>, { lease: string }> | EntryOf<"held">,
) {
  switch (entry.type) {
    case "held":
      queue.turns.get(entry.token)?.();
      return queue.ifHeld.get(entry.token) ?? null;
    case "queued":
      // A waiter that is queued once more had lost its place: it is at the end now.
      queue.places.delete(entry.owner);
      queue.places.set(entry.owner, { queued: entry, overtakenBy: null, passedBy: null });
      return null;
    case "withdrawn":
      queue.places.delete(entry.owner);
      return null;
    case "suspected":
      queue.suspects.add(entry.client);
      return null;
    case "cleared":
      queue.suspects.delete(entry.client);
      return null;
    case "granted":
      return grant(queue, entry);
    default:
      return null;
  }
}

/** The waiters before this place, but for those whose client is a suspect. */
function aheadOf(queue: Queue, place: Place | undefined): Place[] {
  const ahead: Place[] = [];
  for (const other of queue.places.values()) {
    if (place && other.queued.atMs >= place.queued.atMs) break;
    if (!queue.suspects.has(other.queued.client)) ahead.push(other);
  }
  return ahead;
}

function grant(queue: Queue, granted: EntryOf<"granted">): Violation | null {
  const { owner, name, token, followers = [] } = granted;
  const place = queue.places.get(owner);
  queue.places.delete(owner);
  for (const other of aheadOf(queue, place)) other.overtakenBy ??= granted;
  for (const [at, follower] of followers.entries()) {
    const passed = aheadOf(queue, queue.places.get(follower));
    queue.turns.set(token + BigInt(at + 1), () => {
      for (const other of passed) other.passedBy ??= granted;
    });
  }
  const first = place?.overtakenBy ?? place?.passedBy;
  if (!granted.isHandoff || !place || !first) return null;
  const violation = {
    checker: "FIFO",
    message: `${first.owner} got "${name}" before ${owner}, which had queued earlier`,
    name,
    fromMs: place.queued.atMs,
    toMs: granted.atMs,
  };
  if (place.overtakenBy) return violation;
  queue.ifHeld.set(token, violation);
  return null;
}
