/**
 * The small worlds that are searched: for each family a narrow one, which is searched to its end,
 * and wider ones, which are searched to a depth.
 */
import { NO_LIMIT, type Request } from "../../src/rules/fits.js";
import type { Family } from "../plan.js";
import { isClientBreakage } from "./ledger-client.js";
import type { Budget } from "./ledger-scene.js";
import { LedgerWorld } from "./ledger-world.js";
import type { QuorumBudget } from "./quorum-scene.js";
import { QuorumWorld } from "./quorum-world.js";
import { type Found, search } from "./search.js";
import type { SequencerBudget } from "./sequencer-scene.js";
import { SequencerWorld } from "./sequencer-world.js";

export interface Scope {
  readonly family: Family;
  readonly title: string;
  /** In a test run; more in a full one. */
  readonly depth: number;
  readonly fullDepth: number;
  /** `without` names the client rule that is left out, if one is. */
  search(depth: number, without: string | null): Found;
}

const EXCLUSIVE: Request = { mode: "exclusive", weight: 1, limit: NO_LIMIT };
const SHARED: Request = { mode: "shared", weight: 1, limit: NO_LIMIT };

function ledger(
  title: string,
  [depth, fullDepth]: readonly [number, number],
  requests: Readonly<Record<string, Request>>,
  budget: Budget,
): Scope {
  return {
    family: "arbiter",
    title: `ledger, ${title}`,
    depth,
    fullDepth,
    search: (most, without) => {
      const broken = isClientBreakage(without) ? without : null;
      return search(new LedgerWorld(requests, budget, broken), most);
    },
  };
}

function quorum(
  title: string,
  [depth, fullDepth]: readonly [number, number],
  owners: number,
  budget: QuorumBudget,
): Scope {
  return {
    family: "quorum",
    title: `quorum, ${title}`,
    depth,
    fullDepth,
    search: (most, without) => search(new QuorumWorld(owners, budget, without), most),
  };
}

function sequencer(
  title: string,
  [depth, fullDepth]: readonly [number, number],
  requests: Readonly<Record<string, Request>>,
  budget: SequencerBudget,
): Scope {
  return {
    family: "sequencer",
    title: `sequencer, ${title}`,
    depth,
    fullDepth,
    search: (most, without) => search(new SequencerWorld(requests, budget, without), most),
  };
}

const TWO = { a1: EXCLUSIVE, b1: EXCLUSIVE };
const THREE = { ...TWO, b2: EXCLUSIVE };
const READERS = { a1: EXCLUSIVE, b1: SHARED, b2: SHARED };
/** Permits: the first has most of them, and the others fit beside each other. */
const permits = (weight: number): Request => ({ mode: "shared", weight, limit: 5 });
const PERMITS = { a1: permits(4), b1: permits(3), c1: permits(1) };

export const scopes: readonly Scope[] = [
  ledger("two owners", [99, 99], TWO, { ticks: 3, faults: 1, asks: 2, renewals: 1, revokes: 0 }),
  ledger("two faults", [6, 7], TWO, {
    ticks: 4,
    faults: 2,
    asks: 2,
    renewals: 1,
    revokes: 1,
  }),
  ledger("three owners", [6, 8], THREE, { ticks: 4, faults: 1, asks: 2, renewals: 1, revokes: 0 }),
  ledger("readers", [6, 8], READERS, { ticks: 4, faults: 1, asks: 2, renewals: 1, revokes: 0 }),
  quorum("two proposers", [99, 99], 2, {
    ticks: 3,
    faults: 2,
    rounds: 2,
    renewals: 1,
    restarts: 0,
  }),
  quorum("late messages", [5, 7], 2, { ticks: 3, faults: 3, rounds: 2, renewals: 1, restarts: 0 }),
  quorum("a restart", [7, 8], 2, { ticks: 4, faults: 1, rounds: 2, renewals: 1, restarts: 1 }),
  quorum("three proposers", [6, 8], 3, {
    ticks: 3,
    faults: 2,
    rounds: 2,
    renewals: 0,
    restarts: 0,
  }),
  sequencer("two owners", [99, 99], TWO, { ticks: 4, faults: 1, elections: 0 }),
  sequencer("an election", [99, 99], TWO, { ticks: 4, faults: 0, elections: 1 }),
  sequencer("three owners", [6, 8], THREE, { ticks: 4, faults: 1, elections: 0 }),
  sequencer("permits", [6, 8], PERMITS, { ticks: 2, faults: 1, elections: 0 }),
];
