/**
 * The confirm of a handed-off lock is sent before `acquire` resolves. So the store receives the
 * confirm in time, even when the program then blocks its event loop with its work.
 */
import type { Entry } from "../history.js";
import { StoreAccount } from "./store-account.js";
import type { Violation } from "./violation.js";

export function checkConfirmation(entries: readonly Entry[], withinMs: number): Violation[] {
  const account = new StoreAccount(entries);
  const violations: Violation[] = [];
  for (const entry of entries) {
    if (entry.type !== "held") continue;
    const { name, lease, atMs } = entry;
    const grant = account.grantOf(entry);
    if (!grant?.granted.isHandoff) continue;
    const toMs = atMs + withinMs;
    // The store does not execute the confirm of a grant that was revoked before.
    const confirmedMs = grant.words[1]?.atMs ?? Number.POSITIVE_INFINITY;
    if (Math.min(confirmedMs, grant.revokedMs) <= toMs) continue;
    const message = `${lease} got "${name}" before its confirm was sent`;
    violations.push({ checker: "confirmation", message, name, fromMs: atMs, toMs });
  }
  return violations;
}
