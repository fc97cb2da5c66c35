import type { Facts } from "../../contract/checks.js";
import type { Survival } from "../../contract/examination.js";
import { known } from "../doctor/read-facts.js";
import { CLIENT_SURVIVALS, seconds } from "../doctor/survivals.js";
import type { ZookeeperFacts } from "./zookeeper-facts.js";

/** The survivals of an ensemble with these facts. */
export function zookeeperSurvivals(facts: Facts<ZookeeperFacts>, ttlMs: number): Survival[] {
  return [
    ...CLIENT_SURVIVALS,
    serverFails(known(facts.voters)),
    {
      event: "The leader is cut off",
      outcome: "An answer that no majority confirmed counts for nothing.",
      isSafe: true,
    },
    {
      event: "All servers restart with their data",
      outcome: `Locks go on if a leader is there within ${seconds(ttlMs)}, else they end in time.`,
      isSafe: true,
    },
    {
      event: "The data is lost, or an old snapshot restored",
      outcome: `Locks are lost: two may believe for up to ${seconds(ttlMs)}. Tokens may repeat.`,
      isSafe: false,
    },
  ];
}

function serverFails(voters: number | undefined): Survival {
  const event = "A server fails";
  if (voters === undefined) {
    const outcome = "Locks go on if the others are a quorum; their number is not known.";
    return { event, outcome, isSafe: true };
  }
  const endured = Math.max(0, Math.ceil(voters / 2) - 1);
  const outcome =
    endured > 0
      ? `Locks go on: ${endured} of ${voters} may fail.`
      : "Locks stop until it is back, and leases end at their deadlines.";
  return { event, outcome, isSafe: true };
}
