/** The entries of a lab's history as the simulation's checkers read them. */
import type * as simulation from "../simulation/history.js";
import { NO_LIMIT } from "../src/rules/fits.js";
import type { Entry } from "./history.js";
import { LOCK_NAME } from "./orders.js";

/** A process asks once in a trial, so its lane names the lease as well. */
export function simulated(entries: readonly Entry[]): simulation.Entry[] {
  return entries.flatMap((entry) => {
    const happening = happeningOf(entry);
    return happening ? [{ atMs: entry.atMs, ...happening }] : [];
  });
}

const CLAIM = {
  name: LOCK_NAME,
  mode: "exclusive",
  weight: 1,
  limit: NO_LIMIT,
} as const;

function happeningOf(entry: Entry): simulation.Happening | null {
  switch (entry.type) {
    case "asks":
      return { type: "asked", ...of(entry.lane), ...CLAIM, withinMs: Infinity, waits: true };
    case "believes":
      return {
        type: "held",
        ...of(entry.lane),
        ...CLAIM,
        ...HELD,
        token: BigInt(entry.token ?? 0),
      };
    // Each step of work follows a check that passed.
    case "worksFrom":
    case "worksTo":
      return { type: "probed", lease: entry.lane, holds: true };
    case "releases":
      return { type: "releasing", lease: entry.lane };
    case "told":
      return { type: "lost", lease: entry.lane, reason: entry.reason };
    case "fault":
      return entry.what === "killed" ? { type: "crashed", process: entry.lane } : null;
    default:
      return null;
  }
}

const HELD = {
  ttlMs: 0,
  renews: true,
  graceMs: 0,
  longestMs: Infinity,
  turns: 1,
  listens: true,
} as const;

function of(lane: string): { process: string; lease: string; owner: string } {
  return { process: lane, lease: lane, owner: lane };
}
