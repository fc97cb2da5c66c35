import { Chance } from "../chance.js";
import type { Plan } from "../plan.js";

/** The plan of a seed for ZooKeeper, whose store joins the writes of one turn. */
export function zookeeperPlan(plan: Plan): Plan {
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
