import type { Survival } from "../../contract/examination.js";
import { renewAfterMs } from "../../rules/renewal-pace.js";
import { CLIENT_SURVIVALS, seconds } from "../doctor/survivals.js";
import type { RedlockFacts } from "./redlock-facts.js";
import { majorityOf } from "./tally.js";

/** The survivals of these nodes. */
export function redlockSurvivals({ nodes, terms }: RedlockFacts, ttlMs: number): Survival[] {
  const majority = majorityOf(nodes.length);
  const endured = nodes.length - majority;
  const here = nodes.filter(({ info }) => info !== null).length;
  const waitMs = Math.max(terms.maxTtlMs, ttlMs);
  const two = `two may believe for up to ${seconds(renewAfterMs(ttlMs))}, until a renewal tells`;
  const more = here - majority;
  return [
    ...CLIENT_SURVIVALS,
    {
      event: "A node fails",
      outcome:
        more > 0
          ? `Locks go on: ${more} of the ${here} nodes that answer may fail.`
          : "No majority is left: locks stop, and leases end at their deadlines.",
      isSafe: true,
    },
    {
      event: "A node restarts without its data",
      outcome: `Locks are kept: the node votes again after ${seconds(waitMs)}.`,
      isSafe: true,
    },
    {
      event: "All nodes lose their data at once",
      outcome: `Locks are kept if no lease was longer than ${seconds(terms.maxTtlMs)}.`,
      isSafe: ttlMs <= terms.maxTtlMs,
    },
    {
      event: "The clock of a node jumps ahead",
      outcome:
        endured > 0
          ? `Locks are kept where more than ${majority} nodes voted for them; else ${two}.`
          : `Leases end early there: ${two}.`,
      isSafe: false,
    },
  ];
}
