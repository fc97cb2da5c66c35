import type { Deadlock } from "../locks/deadlocks.js";
import { reasonOf, whoIs } from "./holder-text.js";

/** One circle of leases for people: a line for each lease, in the order in which they wait. */
export function deadlockText({ steps }: Deadlock): string[] {
  const count = steps.length;
  const what = count === 1 ? "a lease waits for itself" : `${count} leases wait for each other`;
  const lines = steps.map(({ name, token, meta, waitsFor }) => {
    const by = `${whoIs(meta)}${reasonOf(meta)}, token ${token}`;
    return `  ${name}: held by ${by}, waits for ${waitsFor}`;
  });
  return [`Deadlock: ${what}. To end it, revoke one of them.`, ...lines];
}
