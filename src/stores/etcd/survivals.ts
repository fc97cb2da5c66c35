import type { Facts } from "../../checks.js";
import type { Survival } from "../../examination.js";
import { renewAfterMs } from "../../rules/renewal-pace.js";
import { known } from "../examining/read-facts.js";
import { CLIENT_SURVIVALS, seconds } from "../examining/survivals.js";
import type { EtcdFacts } from "./etcd-facts.js";

/** The survivals of a cluster with these facts. */
export function etcdSurvivals(facts: Facts<EtcdFacts>, ttlMs: number): Survival[] {
  const two = `two may believe for up to ${seconds(renewAfterMs(ttlMs))}, until a renewal tells`;
  const voters = known(facts.members)?.filter(({ isLearner }) => !isLearner).length;
  return [
    ...CLIENT_SURVIVALS,
    memberFails(voters),
    {
      event: "The leader is cut off",
      outcome: "An answer that no majority confirmed counts for nothing.",
      isSafe: true,
    },
    {
      event: "All members restart with their data",
      outcome: `Locks go on if a leader is there within ${seconds(ttlMs)}, else they end in time.`,
      isSafe: true,
    },
    {
      event: "The data is lost, or restored from a backup",
      outcome: `Locks are lost: ${two}. Tokens may repeat.`,
      isSafe: false,
    },
  ];
}

function memberFails(voters: number | undefined): Survival {
  const event = "A member fails";
  if (voters === undefined) {
    const outcome = "Locks go on if the others are a majority; their number is not known.";
    return { event, outcome, isSafe: true };
  }
  const endured = Math.ceil(voters / 2) - 1;
  const outcome =
    endured > 0
      ? `Locks go on: ${endured} of ${voters} may fail.`
      : "Locks stop until it is back, and leases end at their deadlines.";
  return { event, outcome, isSafe: true };
}
