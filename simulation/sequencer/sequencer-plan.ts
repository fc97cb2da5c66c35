import { Chance } from "../chance.js";
import { NO_FAULTS } from "../faults.js";
import type { Fault, Plan, Profile } from "../plan.js";
import { FAIR } from "../weather.js";

/** The faults of a cluster: `restart` is another leader, `save` a compaction of the history. */
const CLUSTER_FAULTS: Partial<Record<Profile, Partial<Record<Fault, number>>>> = {
  lossy: { save: 1 },
  slow: { save: 1 },
  crash: { save: 0.5 },
  restart: { forget: 0, restart: 3, reset: 1, step: 0, save: 1 },
  storm: { forget: 0, restart: 2, step: 0, save: 1 },
};

/** The plan of a seed for the sequencer family. */
export function sequencerPlan(plan: Plan): Plan {
  const sequenced = sequencedPlan(plan);
  const isOnce = new Chance(plan.seed, "sequencer direction").isLucky(0.05);
  return isOnce ? lostOncePlan(sequenced) : sequenced;
}

/**
 * Programs run one `once` after the other, and requests for an entry are lost: when an entry is
 * found again, the work may be done already.
 */
function lostOncePlan(plan: Plan): Plan {
  return {
    ...plan,
    profile: "lossy",
    names: ["a"],
    ttlsMs: [plan.ttlsMs[0] as number],
    kinds: { mutex: 0, read: 0, semaphore: 0, once: 1 },
    thinkParts: [0.05, 0.5],
    revokes: false,
    weather: { ...FAIR, delayMs: [0.2, 20], loss: 0.15 },
    drift: 0.00002,
    faults: { ...NO_FAULTS, reset: 3, cut: 1, save: 1 },
    blocks: 0,
  };
}

function sequencedPlan(plan: Plan): Plan {
  const chance = new Chance(plan.seed, "sequencer plan");
  const profile = plan.profile === "local" ? "restart" : plan.profile;
  const ttlMs = chance.pick([2_000, 3_000, 12_000]);
  const part = ttlMs / (plan.ttlsMs[0] as number);
  const { weather } = plan;
  return {
    ...plan,
    family: "sequencer",
    profile,
    // Readers and holders of permits meet under one name: limits come and go.
    kinds: chance.isLucky(0.15) ? { mutex: 0, read: 1, semaphore: 1, once: 0 } : plan.kinds,
    offerMs: undefined,
    ttlsMs: chance.isLucky(0.5) ? [ttlMs] : [ttlMs, ttlMs * 3],
    // A session lasts for whole seconds, so no renewal is for less. A process that dies while its
    // entry moves to a longer session leaves the entry there, which no checker can know.
    renewalParts: profile === "crash" ? [1] : [1, 1.1, 1.5, 2],
    // A client counts each time that it sends a request, so the network makes no copies.
    weather: { ...weather, copies: 0, loss: profile === "restart" ? 0.02 : weather.loss },
    faults: { ...plan.faults, ...CLUSTER_FAULTS[profile] },
    faultEveryMs: plan.faultEveryMs * part,
    chaosMs: plan.chaosMs * part,
  };
}
