import type { Acquire, Command, Renew } from "../../rules/ledger-command.js";

/** Whether an acquire or a renewal differs from the other one only in its key and its owner. */
export function hasSameTerms(one: Command, other: Acquire | Renew): one is Acquire | Renew {
  if (one.type === "acquire") {
    return (
      other.type === "acquire" &&
      one.notAfterUs === other.notAfterUs &&
      one.seenToken === other.seenToken &&
      one.ttlUs === other.ttlUs &&
      one.span === other.span &&
      one.enqueue === other.enqueue &&
      one.mode === other.mode &&
      one.weight === other.weight &&
      one.limit === other.limit &&
      one.offerUs === other.offerUs &&
      one.touchUs === other.touchUs &&
      one.client === other.client &&
      one.meta === other.meta
    );
  }
  return (
    one.type === "renew" &&
    other.type === "renew" &&
    !one.heir &&
    !other.heir &&
    one.notAfterUs === other.notAfterUs &&
    one.seenToken === other.seenToken &&
    one.ttlUs === other.ttlUs
  );
}
