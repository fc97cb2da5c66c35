/**
 * Who is told to hold a lock that was handed over has already told the store so: the confirm is on
 * its way before `acquire` resolves. So the store hears of it in time, even when the program does
 * nothing else for a while than what it wanted the lock for.
 */
import type { Entry } from "../history.js";
import { StoreAccount } from "./store-account.js";
import type { Violation } from "./violation.js";

export function checkConfirmation(entries: readonly Entry[], withinMs: number): Violation[] {
  const account = new StoreAccount(entries);
  const violations: Violation[] = [];
  for (const entry of entries) {
    if (entry.type !== "held") continue;
    const { name, token, lease, atMs } = entry;
    const grant = account.grantOf(entry);
    // Later turns on a grant find it confirmed.
    if (!grant?.granted.isHandoff || grant.granted.token !== token) continue;
    const toMs = atMs + withinMs;
    const [, confirmedMs = Number.POSITIVE_INFINITY] = grant.wordsMs;
    if (Math.min(confirmedMs, grant.revokedMs) <= toMs) continue;
    const message = `${lease} was given "${name}" before the store was told`;
    violations.push({ checker: "confirmation", message, name, fromMs: atMs, toMs });
  }
  return violations;
}
