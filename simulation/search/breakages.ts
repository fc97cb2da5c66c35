/**
 * Rules that are left out, one at a time, to see that the search finds what they are for: a rule of
 * the small client by its title, a rule of the real code by a mutant of the simulation.
 */
export interface Breakage {
  /** The scope that shows it, within the depth of a test run. */
  readonly scope: string;
  readonly without?: string;
  /** The title of the mutant. */
  readonly mutant?: string;
  /** The rule that is violated. */
  readonly violates: RegExp;
}

const inClient = (without: string, scope: string, violates: RegExp): Breakage => ({
  scope,
  without,
  violates,
});
const inCode = (mutant: string, scope: string, violates: RegExp): Breakage => ({
  scope,
  mutant,
  violates,
});

const RESTLESS = /never comes to rest/;

export const breakages: readonly Breakage[] = [
  inClient("the deadline counts from the answer", "ledger, two owners", /Exclusion/),
  inClient("no margin for the clock", "ledger, two owners", /Exclusion/),
  inClient("a release leaves no tombstone", "ledger, two owners", /Ghost/),
  inClient("every push is believed", "ledger, two faults", /Exclusion/),
  inClient("a handed-off grant needs no confirm", "ledger, two owners", /Exclusion/),
  inClient("a lease that is gone goes on", "ledger, two faults", /Exclusion/),
  inClient("a waiter sends no heartbeat", "ledger, two owners", RESTLESS),
  inCode("an acquire has no notAfter", "ledger, two owners", /Ghost/),
  inCode("a release leaves no tombstone", "ledger, two owners", /Ghost/),
  inCode("tombstones stay for ever", "ledger, two owners", RESTLESS),
  inCode("a renewal makes a lost grant again", "ledger, two owners", /Tokens/),
  inCode("a token ignores the last one", "ledger, two owners", /Tokens/),
  inCode("a waiter is not removed on abort", "ledger, two owners", /Ghost/),
  inCode("a release does not serve the queue", "ledger, two owners", /Wake-up/),
  inCode("silent clients keep their places", "ledger, three owners", RESTLESS),
  inCode("newcomers overtake the queue", "ledger, readers", /Order/),
  inCode("a writer joins readers", "ledger, readers", /Exclusion/),
  inClient("a quorum's deadline counts from the answers", "quorum, two proposers", /Tokens/),
  inCode("quorum: a node votes below its ballot", "quorum, two proposers", /Ghost/),
  inCode("quorum: a vote takes the lock of another holder", "quorum, two proposers", /Tokens/),
  inCode("quorum: half of the nodes are enough", "quorum, two proposers", /Tokens/),
  inCode("quorum: a restarted node votes at once", "quorum, a restart", /Exclusion/),
  inCode("quorum: the marker of an earlier process counts", "quorum, a restart", /Ghost/),
  inClient("a queue is read before a turn", "sequencer, three owners", /Exclusion/),
  inClient("a keep-alive needs its term", "sequencer, an election", /Order/),
  inClient("a session's deadline counts from the sending", "sequencer, two owners", /Order/),
  inClient("a holder tells those behind", "sequencer, permits", /Wake-up/),
  inClient("a withdrawal writes the guard", "sequencer, two owners", /Ghost/),
];
