/** The meaning of a seed: programs and their operations, the weather, and the faults. */
import { Chance } from "./chance.js";
import { directedPlan } from "./directed-plan.js";
import { NO_FAULTS } from "./faults.js";
import type { Kind } from "./operation.js";
import { quorumPlan } from "./quorum/quorum-plan.js";
import { sequencerPlan } from "./sequencer/sequencer-plan.js";
import { FAIR, type Weather } from "./weather.js";
import { zookeeperPlan } from "./zookeeper/zookeeper-plan.js";

/**
 * clear: no faults. busy: programs block their event loops, but not for long. crash: programs die.
 * local: all programs are in one process with their store, without a network. Each of the others
 * adds one kind of fault; a storm has them all.
 */
export const PROFILES = [
  "clear",
  "lossy",
  "clocks",
  "frozen",
  "crash",
  "slow",
  "busy",
  "restart",
  "storm",
  "local",
] as const;
export type Profile = (typeof PROFILES)[number];

export const FAULTS = [
  "pause",
  "suspend",
  "crash",
  "reset",
  "cut",
  "stall",
  "step",
  "restart",
  "forget",
  "wall",
  "save",
  "ambush",
] as const;
export type Fault = (typeof FAULTS)[number];

/** How a store decides: one server, a majority of nodes, a queue in etcd or in ZooKeeper. */
export type Family = "arbiter" | "quorum" | "sequencer" | "zookeeper";

export interface Plan {
  readonly seed: number;
  readonly family: Family;
  readonly profile: Profile;
  /** The number of nodes of a quorum; else 0. */
  readonly nodes: number;
  /**
   * For how long the nodes remember that leases may be longer than usual, in parts of the ttl; else
   * 0. May be so short that they forget it between two announcements.
   */
  readonly announceParts: number;
  /** How often a program reaches only a bare majority of the nodes. */
  readonly cutOff: number;
  readonly programs: number;
  /** How many operations a program does at the same time. */
  readonly tasks: number;
  readonly names: readonly string[];
  readonly ttlsMs: readonly number[];
  /** All leases of a program have the same ttl. */
  readonly hasOwnTtls: boolean;
  readonly offerMs: number | undefined;
  readonly storeTimeoutMs: number | undefined;
  /** Programs go on when a release is sent, not when it is answered. */
  readonly onlySends: boolean;
  /** How much piled-up work the store does in one batch: small, because little work piles up. */
  readonly slice: number;
  /** How often the leases of a program are renewed for it. */
  readonly keeps: number;
  /** How often a program renews a lease itself, and for how long, in parts of the ttl. */
  readonly renewals: number;
  readonly renewalParts: readonly number[];
  /** Such a renewal reaches one node of several; soon after it the program renews for the ttl. */
  readonly renewsUnevenly: boolean;
  /** How often an operation is of each kind. */
  readonly kinds: Readonly<Record<Kind, number>>;
  readonly strict: number;
  /** The tasks of a program go on together: they ask for locks, and release them, in one turn. */
  readonly inStep: boolean;
  /** How long a program pauses between two operations, in parts of the ttl. */
  readonly thinkParts: readonly [number, number];
  readonly maxLocalTurns: number;
  readonly revokes: boolean;
  readonly weather: Weather;
  readonly believesPushes: boolean;
  /** How much faster or slower the clocks of programs and store may run. */
  readonly drift: number;
  readonly leasesStep: boolean;
  /** How far the wall clock of a program may be off: one of these. */
  readonly wallsMs: readonly number[];
  readonly faults: Readonly<Record<Fault, number>>;
  readonly faultEveryMs: number;
  /** How long a program blocks or is paused, in parts of the ttl. */
  readonly freezeParts: readonly [number, number];
  readonly blocks: number;
  readonly chaosMs: number;
}

export interface PlanOptions {
  readonly family?: Family;
  readonly clients?: number;
  readonly minutes?: number;
}

const TROUBLES: Record<Profile, Partial<Record<Fault, number>>> = {
  clear: {},
  busy: {},
  local: {},
  crash: { crash: 1 },
  lossy: { reset: 3, cut: 1 },
  slow: { stall: 1, reset: 1 },
  frozen: { pause: 3, suspend: 1 },
  clocks: { step: 2, pause: 1 },
  restart: { forget: 2, restart: 1, step: 1, reset: 1 },
  storm: {
    pause: 3,
    suspend: 1,
    crash: 2,
    reset: 3,
    cut: 2,
    stall: 1,
    step: 0.5,
    restart: 0.5,
    forget: 0.5,
  },
};

/** No lease may be lost, and no wait may be longer than necessary. */
export function isHealthy({ profile }: Plan): boolean {
  return profile === "clear" || profile === "busy" || profile === "local";
}

/** Network and clocks have no faults; programs may crash. */
export function isSteady(plan: Plan): boolean {
  return isHealthy(plan) || plan.profile === "crash";
}

/** How often a program blocks right after a grant. */
const BLOCKS: Partial<Record<Profile, number>> = {
  busy: 0.25,
  frozen: 0.25,
  storm: 0.25,
  local: 0.1,
};

export function planOf(seed: number, options: PlanOptions = {}): Plan {
  const plan = arbiterPlan(seed, options);
  if (options.family === "quorum") return quorumPlan(plan);
  if (options.family === "zookeeper") return zookeeperPlan(sequencerPlan(plan), options);
  return options.family === "sequencer" ? sequencerPlan(plan) : directedPlan(plan, options);
}

function arbiterPlan(seed: number, { clients, minutes }: PlanOptions): Plan {
  const chance = new Chance(seed, "plan");
  const profile = PROFILES[seed % PROFILES.length] as Profile;
  const ttlMs = chance.pick([300, 1_000, 3_000, 12_000]);
  const weather = weatherOf(profile, ttlMs, chance);
  const style = chance.pick(["mutual", "turns", "shared", "mixed"] as const);
  const isRough = profile === "clocks" && chance.isLucky(0.5);
  return {
    seed,
    family: "arbiter",
    profile,
    nodes: 0,
    announceParts: 0,
    cutOff: 0,
    programs: clients ?? chance.whole(2, 4),
    tasks: profile === "crash" || style === "turns" ? chance.whole(3, 5) : chance.whole(1, 3),
    names: chance.isLucky(0.7) ? ["a"] : ["a", "b"],
    hasOwnTtls: false,
    ttlsMs: chance.isLucky(0.6) ? [ttlMs] : [ttlMs, ttlMs * chance.pick([0.25, 0.5, 3])],
    offerMs: chance.isLucky(0.6) ? undefined : ttlMs * chance.pick([0.2, 0.5]),
    storeTimeoutMs: undefined,
    onlySends: new Chance(seed, "onlySends").isLucky(0.4),
    slice: new Chance(seed, "slice").pick([0, 0, 1, 64]),
    keeps: 0.6,
    renewals: 0.15,
    renewsUnevenly: false,
    renewalParts: profile === "crash" ? [0.1, 0.5] : [0.1, 0.5, 1, 2],
    kinds: {
      mutual: { mutex: 1, read: 0, semaphore: 0, once: 0.1 },
      turns: { mutex: 1, read: 0, semaphore: 0, once: 0 },
      shared: { mutex: 0.3, read: 0.4, semaphore: 1.3, once: 0 },
      mixed: { mutex: 1, read: 1, semaphore: 1, once: 0.5 },
    }[style],
    strict: style === "turns" ? 0.1 : chance.pick([0, 0.5, 1]),
    inStep: false,
    thinkParts: chance.pick([
      [0.003, 0.5],
      [0.05, 2],
    ]),
    maxLocalTurns: chance.pick([2, 3, 32]),
    // A client that did not confirm an offer stays responsive if the offer was revoked.
    revokes: profile !== "crash" && chance.isLucky(profile === "local" ? 0.6 : 0.2),
    weather,
    believesPushes: !isRough && chance.isLucky(0.85),
    // Pushes are believed only where clocks drift no more than that belief assumes.
    drift: isRough ? 0.0045 : profile === "clocks" || profile === "storm" ? 0.0004 : 0.00002,
    leasesStep: profile !== "local" && chance.isLucky(0.7),
    wallsMs: [0],
    faults: { ...NO_FAULTS, ...TROUBLES[profile] },
    faultEveryMs: chance.spread(profile === "crash" ? 2 * ttlMs : ttlMs / 2, 4 * ttlMs),
    freezeParts: profile === "busy" || profile === "local" ? [0.05, 0.4] : [0.1, 3],
    blocks: BLOCKS[profile] ?? 0,
    chaosMs: minutes === undefined ? ttlMs * chance.between(8, 16) : minutes * 60_000,
  };
}

function weatherOf(profile: Profile, ttlMs: number, chance: Chance): Weather {
  // Some copies arrive early enough to do harm, and some do not.
  const lateMs = [5, Math.min(3 * ttlMs, 8_000)] as const;
  switch (profile) {
    case "lossy":
      return {
        ...FAIR,
        lateMs,
        loss: chance.pick([0, 0.05, 0.15]),
        copies: chance.pick([0, 0, 0.1]),
        ordered: chance.isLucky(0.5),
        delayMs: [0.2, chance.pick([2, 20])],
      };
    case "slow":
      return {
        ...FAIR,
        lateMs,
        delayMs: [1, chance.pick([10, ttlMs / 20])],
        slow: chance.pick([0, 0.1, 0.3]),
        slowPush: chance.pick([0.1, 0.5]),
        slowMs: [ttlMs / 50, ttlMs * chance.pick([0.5, 1.5])],
        ordered: chance.isLucky(0.5),
      };
    case "storm":
      return {
        lateMs,
        delayMs: [0.2, ttlMs / 50],
        slow: 0.05,
        slowPush: 0.1,
        slowMs: [ttlMs / 50, ttlMs],
        loss: 0.05,
        copies: chance.pick([0, 0.05]),
        ordered: chance.isLucky(0.3),
      };
    default:
      return FAIR;
  }
}
