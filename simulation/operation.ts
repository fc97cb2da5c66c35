import { NO_LIMIT } from "../src/rules/fits.js";
import type { Chance } from "./chance.js";
import type { Mode } from "./history.js";
import type { Plan } from "./plan.js";

export type Kind = "mutex" | "read" | "semaphore" | "once";

/** One use of a lock by a program. */
export interface Operation {
  readonly thinkMs: number;
  readonly name: string;
  /** The name in the history. */
  readonly label: string;
  readonly kind: Kind;
  readonly mode: Mode;
  readonly weight: number;
  readonly limit: number;
  readonly ttlMs: number;
  readonly fairness: "bounded" | "strict";
  readonly maxLocalTurns: number;
  readonly renew: boolean;
  readonly maxHoldMs: number;
  readonly graceMs: number;
  /** The call that acquires the lock, and how long it may wait. */
  readonly entry: "acquire" | "run" | "try";
  readonly waitMs: number;
  /** When the signal of the caller ends the wait. */
  readonly abortMs: number;
  readonly holdMs: number;
  /** How long the program blocks right after the grant; 0: not at all. */
  readonly blockMs: number;
  /** The ttl of a renewal by the program itself; 0: no such renewal. */
  readonly renewMs: number;
  /** The ttl of a renewal just before that one, which reaches one node of several; 0: none. */
  readonly unevenRenewMs: number;
  readonly listens: boolean;
  readonly probes: boolean;
  readonly releases: boolean;
}

/** A shorter lease has no time for a renewal, between its margin, its grace and a round trip. */
const MIN_RENEWED_MS = 25;

export function drawOperation(plan: Plan, chance: Chance): Operation {
  const kind = chance.weigh(plan.kinds);
  const name = chance.pick(plan.names);
  const ttlMs = chance.pick(plan.ttlsMs);
  const renew = chance.isLucky(plan.keeps);
  const limit = kind === "semaphore" ? chance.whole(2, 4) : NO_LIMIT;
  const isBounded = !chance.isLucky(plan.strict);
  const stays = !renew && chance.isLucky(0.5);
  const renewMs = chance.isLucky(plan.renewals)
    ? Math.max(MIN_RENEWED_MS, ttlMs * chance.pick(plan.renewalParts))
    : 0;
  // With a grace longer than the renewed lease, the warning would come at once.
  const mostGraceMs = renewMs > 0 ? renewMs / 3 : Number.POSITIVE_INFINITY;
  return {
    thinkMs: ttlMs * chance.spread(...plan.thinkParts),
    name,
    label: kind === "once" ? `once ${name}` : name,
    kind,
    mode: kind === "mutex" || kind === "once" ? "exclusive" : "shared",
    weight: kind === "semaphore" ? chance.whole(1, Math.min(limit, 2)) : 1,
    limit,
    ttlMs,
    fairness: isBounded ? "bounded" : "strict",
    maxLocalTurns: plan.maxLocalTurns,
    renew,
    maxHoldMs: chance.isLucky(0.1) ? ttlMs * chance.between(0.2, 1.5) : Number.POSITIVE_INFINITY,
    graceMs: chance.isLucky(0.2) ? Math.min(ttlMs * chance.pick([0.1, 0.3, 0.45]), mostGraceMs) : 0,
    entry: kind === "once" ? "run" : chance.weigh({ acquire: 4, run: 2, try: 1 }),
    waitMs: chance.isLucky(0.2) ? chance.spread(1, 2 * ttlMs) : Number.POSITIVE_INFINITY,
    abortMs: chance.isLucky(0.15) ? chance.spread(1, ttlMs) : Number.POSITIVE_INFINITY,
    // A holder that neither renews nor releases shows whether the next holder waits for the end of
    // the lease.
    holdMs: stays
      ? 2 * ttlMs + 2 * renewMs
      : chance.spread(ttlMs / 100, renew ? 1.5 * ttlMs : ttlMs / 2),
    blockMs: chance.isLucky(plan.blocks) ? ttlMs * chance.between(...plan.freezeParts) : 0,
    renewMs: plan.renewsUnevenly && renewMs > 0 ? ttlMs : renewMs,
    unevenRenewMs: plan.renewsUnevenly ? renewMs : 0,
    listens: chance.isLucky(0.7),
    probes: chance.isLucky(0.7),
    releases: !stays || kind === "once" || chance.isLucky(0.5),
  };
}
