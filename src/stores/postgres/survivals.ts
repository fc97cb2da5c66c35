import type { Facts } from "../../checks.js";
import type { Survival } from "../../examination.js";
import { renewAfterMs } from "../../rules/renewal-pace.js";
import { known } from "../examining/read-facts.js";
import { CLIENT_SURVIVALS, seconds } from "../examining/survivals.js";
import type { PostgresFacts, Settings } from "./postgres-facts.js";

/** Free names wait for the longest ttl, at least so long. */
const LEAST_WAIT_MS = 60_000;

/** The survivals of a database with these facts. */
export function postgresSurvivals(facts: Facts<PostgresFacts>, ttlMs: number): Survival[] {
  const two = `two may believe for up to ${seconds(renewAfterMs(ttlMs))}, until a renewal tells`;
  const wait = `free locks wait for ${seconds(Math.max(LEAST_WAIT_MS, ttlMs))} or more`;
  return [
    ...CLIENT_SURVIVALS,
    restart(known(facts.settings), wait),
    promotion(known(facts.isDeclared) === true, wait),
    {
      event: "The old primary goes on after a promotion",
      outcome: `Two servers accept writes: ${two}.`,
      isSafe: false,
    },
    {
      event: "The clock of the server jumps ahead",
      outcome: `Leases end early: ${two}.`,
      isSafe: false,
    },
  ];
}

function restart(settings: Settings | undefined, wait: string): Survival {
  const event = "The server restarts or crashes";
  if (!settings) {
    return { event, outcome: "Not known: the settings could not be read.", isSafe: false };
  }
  const { fsync, synchronousCommit } = settings;
  if (fsync !== "on") {
    const outcome = `Locks are kept, and ${wait}; a crash of the machine may damage them.`;
    return { event, outcome, isSafe: false };
  }
  const outcome = synchronousCommit === "off" ? `Locks are kept, and ${wait}.` : "Locks are kept.";
  return { event, outcome, isSafe: true };
}

function promotion(isDeclared: boolean, wait: string): Survival {
  const event = "A standby takes over";
  const outcome = isDeclared ? "Locks are kept." : `Locks are kept, and ${wait}.`;
  return { event, outcome, isSafe: true };
}
