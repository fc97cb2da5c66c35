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
  // Many tasks in each program, so that they take turns on one grant.
  const crowd = new Chance(plan.seed, "quorum crowd");
  const isCrowded = crowd.isLucky(0.4);
  const style: Partial<Plan> = { tasks: crowd.whole(4, 8), strict: 0, thinkParts: [0.003, 0.1] };
  // A much longer renewal that reaches only a few nodes makes the votes end far apart.
  const isFarApart = !isCrowded && crowd.isLucky(0.25);
  const isTroubled = !["clear", "busy"].includes(profile);
  // Holders on a bare majority show the leases that a restarted node must wait for.
  const loss = profile === "restart" ? chance.pick([0.05, 0.15]) : plan.weather.loss;
  return {
    ...plan,
    ...(isCrowded ? style : {}),
    renewalParts: isFarApart ? [3] : plan.renewalParts,
    family: "quorum",
    profile,
    nodes: chance.pick([3, 3, 4, 5]),
    // Leases of two names are renewed in one call.
    names: new Chance(plan.seed, "quorum names").isLucky(0.2) ? ["a", "b"] : ["a"],
    kinds: { mutex: 1, read: 0, semaphore: 0, once: 0 },
    ttlsMs: chance.isLucky(0.5) || isCrowded ? [ttlMs] : [ttlMs, ttlMs * 3],
    weather: { ...plan.weather, loss },
    wallsMs: isTroubled ? WALLS_MS : [0],
    faults: isTroubled ? { ...faults, wall: Math.max(0.5, faults.wall) } : faults,
    faultEveryMs: plan.faultEveryMs * part,
    chaosMs: plan.chaosMs * part,
    revokes: false,
  };
}
