import { Chance } from "../chance.js";
import type { Fault, Plan, Profile } from "../plan.js";

const HOUR_MS = 3_600_000;
const WALLS_MS = [0, HOUR_MS, -HOUR_MS, 1_000, -1_000];

/** The faults of nodes, and of the clocks of programs, besides those of any store. */
const NODE_FAULTS: Partial<Record<Profile, Partial<Record<Fault, number>>>> = {
  lossy: { reset: 3, cut: 2, wall: 1 },
  slow: { stall: 3, wall: 1 },
  clocks: { wall: 2, step: 1 },
  crash: { crash: 2, wall: 1 },
  restart: { forget: 2, restart: 2, save: 2, wall: 2 },
};

/** The plan of a seed where several nodes decide by majority. */
export function quorumPlan(plan: Plan): Plan {
  const chance = new Chance(plan.seed, "quorum plan");
  const profile = plan.profile === "local" ? "restart" : plan.profile;
  const faults = { ...plan.faults, ...NODE_FAULTS[profile] };
  const ttlMs = chance.pick([400, 1_000, 3_000]);
  const part = ttlMs / (plan.ttlsMs[0] as number);
  const isTroubled = !["clear", "busy"].includes(profile);
  const loss = profile === "restart" ? chance.pick([0.05, 0.15]) : plan.weather.loss;
  const usual: Plan = {
    ...plan,
    family: "quorum",
    profile,
    nodes: chance.pick([3, 3, 4, 5]),
    // Leases of two names are renewed in one call.
    names: chance.isLucky(0.2) ? ["a", "b"] : ["a"],
    kinds: { mutex: 1, read: 0, semaphore: 0, once: 0 },
    ttlsMs: chance.isLucky(0.5) ? [ttlMs] : [ttlMs, ttlMs * 3],
    weather: { ...plan.weather, loss },
    wallsMs: isTroubled ? WALLS_MS : [0],
    faults: isTroubled ? { ...faults, wall: Math.max(0.5, faults.wall) } : faults,
    faultEveryMs: plan.faultEveryMs * part,
    chaosMs: plan.chaosMs * part,
    announceParts: chance.pick([2, 40]),
    revokes: false,
  };
  const style = chance.weigh({ plain: 3, crowded: 3, uneven: 1.5, forgetful: 1.5, jumpy: 1 });
  if (style === "crowded") return { ...usual, ...crowded(usual, chance) };
  // Without faults of network and nodes, the other styles are no different.
  if (style === "plain" || !isTroubled || profile === "crash") return usual;
  return { ...usual, ...{ uneven, forgetful, jumpy }[style](usual, chance) };
}

/** Many tasks in each program, so that they take turns on one grant. */
function crowded({ ttlsMs }: Plan, chance: Chance): Partial<Plan> {
  return {
    tasks: chance.whole(4, 8),
    strict: 0,
    thinkParts: [0.003, 0.1],
    ttlsMs: ttlsMs.slice(0, 1),
  };
}

/** The votes for a lease end far apart, because a much longer renewal reached only one node. */
function uneven(plan: Plan, chance: Chance): Partial<Plan> {
  const [ttlMs = 0] = plan.ttlsMs;
  return {
    ...inDemand(plan),
    weather: { ...plan.weather, loss: chance.pick([0.02, 0.15]) },
    // The nodes know of the longer leases, and do not refuse the renewal.
    ttlsMs: [ttlMs, ttlMs * 3],
    announceParts: 40,
    keeps: 0.3,
    renewals: 0.5,
    renewalParts: [3],
    renewsUnevenly: true,
    // A jump would excuse a second grant.
    faults: { ...plan.faults, step: 0 },
  };
}

/** The clocks of nodes jump, and end votes before the holder renews them. */
function jumpy(plan: Plan, chance: Chance): Partial<Plan> {
  return {
    ...inDemand(plan),
    nodes: chance.pick([3, 3, 5]),
    weather: { ...plan.weather, loss: 0.15 },
    keeps: 0.9,
    faults: { ...plan.faults, step: 4 },
    faultEveryMs: plan.faultEveryMs / 4,
  };
}

/** Nodes restart without the votes for leases that are longer than a restarted node waits. */
function forgetful(plan: Plan, chance: Chance): Partial<Plan> {
  const [usualMs = 0] = plan.ttlsMs;
  // A client surveys the nodes at most twice a second.
  const ttlMs = Math.max(1_000, usualMs);
  const part = ttlMs / usualMs;
  return {
    ...inDemand(plan),
    nodes: chance.pick([3, 3, 5]),
    cutOff: 0.5,
    weather: { ...plan.weather, loss: 0.02 },
    ttlsMs: [ttlMs, ttlMs * 5],
    // Programs with short leases alone do not know of the long ones.
    hasOwnTtls: true,
    announceParts: 2,
    // A renewal would take the votes of other nodes.
    keeps: 0.1,
    renewals: 0,
    faults: { ...plan.faults, forget: 2, restart: 2, save: 2, step: 0 },
    faultEveryMs: (plan.faultEveryMs * part) / 2,
    chaosMs: plan.chaosMs * part,
  };
}

/** Others always ask for the lock: a second grant follows as soon as the nodes allow it. */
function inDemand({ tasks }: Plan): Partial<Plan> {
  return { names: ["a"], tasks: Math.max(2, tasks), thinkParts: [0.003, 0.1] };
}
