/**
 * Plans for a share of the seeds of the ledger. They lead to situations that chance alone brings
 * about in fewer than one in a thousand seeds.
 */
import { Chance } from "./chance.js";
import { NO_FAULTS } from "./faults.js";
import type { Plan, PlanOptions } from "./plan.js";
import { FAIR } from "./weather.js";

/** How often a seed has each plan. */
const SHARES = { usual: 10, patient: 8, piledUp: 1, revoked: 1 };

/** Long enough for a wait that no message ends to show, before the silence of the store ends it. */
const PATIENCE_MS = 60_000;

export function directedPlan(plan: Plan, { clients }: PlanOptions): Plan {
  const chance = new Chance(plan.seed, "direction");
  const direction = chance.weigh(SHARES);
  if (direction === "piledUp") return piledUp(plan, chance, clients);
  if (direction === "revoked") return revoked(plan, chance, clients);
  return direction === "patient" ? { ...plan, storeTimeoutMs: PATIENCE_MS } : plan;
}

/**
 * Many leases and offers expire while the store stalls, and it drops one with each command. Pushes
 * are so slow that clients speak before they know of their offers.
 */
function piledUp(plan: Plan, chance: Chance, clients?: number): Plan {
  const shared = sharedPart(plan);
  const [ttlMs] = shared.ttlsMs;
  return {
    ...shared,
    programs: clients ?? chance.whole(3, 4),
    tasks: chance.whole(4, 5),
    offerMs: ttlMs * 0.2,
    slice: 0,
    kinds: { mutex: 0.1, read: 0.2, semaphore: 1.7, once: 0 },
    weather: { ...FAIR, slowPush: 0.7, slowMs: [ttlMs / 5, ttlMs] },
    faults: { ...NO_FAULTS, stall: 1 },
    faultEveryMs: ttlMs / 3,
  };
}

/**
 * Leases are revoked right after their handoff. A push that overtakes others brings the next grant
 * of the same process before the revoked one.
 */
function revoked(plan: Plan, chance: Chance, clients?: number): Plan {
  const shared = sharedPart(plan);
  const [ttlMs] = shared.ttlsMs;
  return {
    ...shared,
    programs: clients ?? chance.whole(1, 2),
    tasks: chance.whole(4, 5),
    offerMs: ttlMs * chance.pick([0.2, 0.5]),
    kinds: { mutex: 1, read: 0.5, semaphore: 0.5, once: 0 },
    strict: 1,
    weather: { ...FAIR, slowPush: 0.5, slowMs: [2, ttlMs / 4] },
    faults: { ...NO_FAULTS, ambush: 1 },
    faultEveryMs: ttlMs / 10,
  };
}

/** One name, one ttl, little thought, and pushes as slow as the weather makes them. */
function sharedPart(plan: Plan): Plan & { readonly ttlsMs: readonly [number] } {
  return {
    ...plan,
    profile: "slow",
    names: ["a"],
    ttlsMs: [plan.ttlsMs[0] as number],
    thinkParts: [0.003, 0.5],
    revokes: false,
    believesPushes: true,
    drift: 0.00002,
    blocks: 0,
  };
}
