import type { FailureCase } from "../../contract/examination.js";
import { CLIENT_FAILURES, seconds, twoHolders } from "../doctor.js";
import type { RedlockFacts } from "./redlock-facts.js";
import { majorityOf } from "./tally.js";

/** The failure cases of these nodes. */
export function redlockFailureCases({ nodes, terms }: RedlockFacts, ttlMs: number): FailureCase[] {
  const majority = majorityOf(nodes.length);
  const endured = nodes.length - majority;
  const here = nodes.filter(({ info }) => info !== null).length;
  const waitMs = Math.max(terms.maxTtlMs, ttlMs);
  const two = twoHolders(ttlMs);
  const more = here - majority;
  return [
    ...CLIENT_FAILURES,
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
