import { type Mutant, NOW } from "./mutant.js";

/** In the quorum family: mistakes of a node, of a proposer, or of the admission of nodes. */
export const quorum: readonly Mutant[] = [
  {
    title: "quorum: a node votes below its ballot",
    rule: "vote-only-above-the-ballot",
    change: "never",
  },
  {
    title: "quorum: the next ballot is a token of the one before",
    rule: "ballots-span-their-tokens",
    change: { term: 2, of: "*", becomes: "1" },
    also: [{ rule: "ballots-span-their-tokens", change: { term: 2, of: "/", becomes: "1" } }],
  },
  {
    title: "quorum: votes for a lower ballot count",
    rule: "only-the-final-ballot-counts",
    change: {
      becomes: `$
            if (raises > 0) {
                for (const [at, vote] of this.lastAnswers.entries()) {
                    if (vote?.type === "granted") round.answers[at] = vote;
                }
            }
            this.lastAnswers = round.answers;`,
      why: "The rule is that no round keeps the votes of the one before.",
    },
  },
  {
    title: "quorum: a vote takes the lock of another holder",
    rule: "vote-spares-another-holder",
    change: "never",
  },
  {
    title: "quorum: half of the nodes are enough",
    rule: "majority-of-all-nodes",
    change: { term: 2, of: "+", becomes: "0" },
  },
  {
    title: "quorum: a deadline counts from the answers",
    rule: "quorum-deadline-counts-from-sending",
    change: { term: 2, of: "call", becomes: NOW },
  },
  {
    title: "quorum: a renewal counts from its answers",
    rule: "quorum-renewal-counts-from-sending",
    change: { term: 2, of: "call", becomes: NOW },
  },
  {
    title: "quorum: a deadline is that of the node that keeps the lease longest",
    rule: "deadline-of-a-majority",
    change: "always",
  },
  {
    title: "quorum: a late grant is kept",
    rule: "quorum-late-grant-is-given-back",
    change: { only: 2, of: "&&" },
    also: [{ rule: "ended-grant-makes-no-lease", change: "never" }],
  },
  {
    title: "quorum: a failed round is not given back",
    rule: "failed-round-is-given-back",
    change: "never",
  },
  {
    title: "quorum: a repeated release tells of a loss",
    rule: "earlier-release-was-ours",
    change: { only: 1, of: "||" },
  },
  {
    title: "quorum: a renewal shortens",
    rule: "node-renewal-never-shortens",
    change: { only: 2, of: "max" },
  },
  {
    title: "quorum: a restarted node votes at once",
    rule: "restarted-node-waits",
    change: { only: 1, of: "?:" },
  },
  {
    title: "quorum: the marker of an earlier process counts",
    rule: "marker-of-this-process-only",
    change: {
      text: /!== \w+/,
      becomes: "=== undefined",
      why: "A node without a marker still has to wait.",
    },
  },
  {
    title: "quorum: a restarted node does not ask how long leases are",
    rule: "restarted-node-asks-for-long-leases",
    change: { value: "0" },
  },
  {
    title: "quorum: nodes forget long leases while one of them lives",
    rule: "long-leases-are-remembered",
    change: { term: 2, of: "+", becomes: "-$" },
  },
  {
    title: "quorum: long leases are not announced",
    rule: "node-refuses-unannounced-leases",
    change: "never",
    also: [{ rule: "long-leases-are-announced", change: "always" }],
  },
  {
    title: "quorum: a wall clock that is set ahead counts as sleep",
    rule: "set-wall-clock-is-no-sleep",
    change: { only: 2, of: "&&" },
  },
  {
    title: "quorum: a grant without a majority goes on",
    rule: "lost-majority-ends-the-grant",
    change: "drop",
    also: [{ rule: "unknown-is-not-lost", change: "never" }],
  },
];
