/**
 * Bugs to plant, one at a time, in a copy of the build. Each is small, plausible, and must be found
 * by the seeds that every test run goes through.
 */
import type { Family } from "../plan.js";
import { arbiter } from "./arbiter.js";
import { lease } from "./lease.js";
import { ledger } from "./ledger.js";
import { localQueue } from "./local-queue.js";
import type { Mutant } from "./mutant.js";
import { quorum } from "./quorum.js";
import { rules } from "./rules.js";
import { sequencer } from "./sequencer.js";
import { zookeeper } from "./zookeeper.js";

function of(family: Family, list: readonly Mutant[]): Mutant[] {
  return list.map((mutant) => ({ ...mutant, family }));
}

export const mutants: readonly Mutant[] = [
  ...rules,
  ...ledger,
  ...arbiter,
  ...lease,
  ...localQueue,
  ...of("quorum", quorum),
  ...of("sequencer", sequencer),
  ...of("zookeeper", zookeeper),
];
