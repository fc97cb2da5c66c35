import { Chance } from "../chance.js";
import { NO_FAULTS } from "../faults.js";
import type { Plan, PlanOptions } from "../plan.js";
import { FAIR } from "../weather.js";

/** The plan of a seed for ZooKeeper, whose store joins the writes of one turn. */
export function zookeeperPlan(plan: Plan, { clients }: PlanOptions): Plan {
  const isAmbushed = new Chance(plan.seed, "zookeeper direction").isLucky(0.1);
  return isAmbushed ? ambushedPlan(plan, clients) : joinedPlan(plan);
}

/**
 * Servers fail when it hurts: see `ZookeeperServers.ambush`. Few tasks, because each request of a
 * session tells the leader that its client lives.
 */
function ambushedPlan(plan: Plan, clients = 4): Plan {
  const ttlMs = 12_000;
  return {
    ...plan,
    family: "zookeeper",
    profile: "restart",
    programs: clients,
    tasks: 2,
    names: ["a"],
    ttlsMs: [ttlMs],
    thinkParts: [0.05, 0.5],
    kinds: { mutex: 1, read: 0, semaphore: 0, once: 0 },
    revokes: false,
    weather: FAIR,
    drift: 0.00002,
    faults: { ...NO_FAULTS, ambush: 1 },
    faultEveryMs: ttlMs / 2,
    chaosMs: plan.chaosMs * (ttlMs / (plan.ttlsMs[0] as number)),
    blocks: 0,
  };
}

function joinedPlan(plan: Plan): Plan {
  const chance = new Chance(plan.seed, "zookeeper plan");
  if (chance.isLucky(0.5)) return { ...plan, family: "zookeeper" };
  return {
    ...plan,
    family: "zookeeper",
    inStep: true,
    tasks: Math.max(plan.tasks, chance.whole(2, 4)),
    names: chance.pick([
      ["a", "b"],
      ["a", "b", "c"],
    ]),
  };
}
