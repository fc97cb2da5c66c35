/**
 * Waiters of one process take turns on one grant only as far as the store allowed it: no more turns
 * than the span of the grant, nor than the limit that was asked for, and no token of it twice.
 */
import type { Entry, EntryOf } from "../history.js";
import { type GrantAccount, StoreAccount } from "./store-account.js";
import type { Violation } from "./violation.js";

export function checkBoundedOvertaking(entries: readonly Entry[]): Violation[] {
  const account = new StoreAccount(entries);
  const turns = new Map<GrantAccount, EntryOf<"held">[]>();
  const violations: Violation[] = [];
  for (const held of entries) {
    if (held.type !== "held") continue;
    const grant = account.grantOf(held);
    // A token that the store never gave is found in token-order.ts.
    if (!grant) continue;
    const taken = [...(turns.get(grant) ?? []), held];
    turns.set(grant, taken);
    const mostTurns = Math.min(grant.granted.span, held.turns);
    if (taken.length <= mostTurns) continue;
    violations.push({
      checker: "bounded overtaking",
      message:
        `${held.process} took turn ${taken.length} on a grant of "${held.name}" ` +
        `for ${mostTurns}`,
      name: held.name,
      fromMs: grant.granted.atMs,
      toMs: held.atMs,
    });
  }
  return violations;
}
