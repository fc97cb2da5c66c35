import { type Mutant, NOW } from "./mutant.js";

/** In the sequencer family: mistakes about an entry, a session or a watch. */
export const sequencer: readonly Mutant[] = [
  {
    title: "sequencer: a call waits for its store",
    rule: "call-ends-in-time",
    change: "never",
  },
  {
    title: "sequencer: a keep-alive counts without a proof of its term",
    rule: "keep-alive-needs-its-term",
    change: { only: 2, of: "||" },
  },
  {
    title: "sequencer: a deadline counts from the proof",
    rule: "session-deadline-counts-from-sending",
    change: { term: 1, of: "+", becomes: NOW },
  },
  {
    title: "sequencer: a late grant is kept",
    rule: "entry-granted-late-is-withdrawn",
    change: "never",
    also: [{ rule: "ended-grant-makes-no-lease", change: "never" }],
  },
  {
    title: "sequencer: an event is taken for a turn",
    rule: "turn-by-the-queue-not-the-event",
    change: { value: "this.#waiters.values().next().value?.waiter" },
  },
  {
    title: "sequencer: an entry that holds does not say so",
    rule: "holder-tells-those-behind",
    change: "drop",
  },
  {
    title: "sequencer: limits that have left are forgotten",
    rule: "limits-that-left-are-remembered",
    change: "drop",
  },
  {
    title: "sequencer: the end of a lease here goes unnoticed",
    rule: "end-of-a-lease-is-told-here",
    change: "drop",
  },
  {
    title: "sequencer: a waiter never looks by itself",
    rule: "waiter-looks-by-itself",
    change: "drop",
  },
  {
    title: "sequencer: an entry that is not wanted stays",
    rule: "unwanted-entry-is-withdrawn",
    change: "drop",
  },
  {
    title: "sequencer: a late copy makes a withdrawn entry again",
    rule: "withdrawal-writes-the-guard",
    change: { value: "[]" },
  },
  {
    title: "sequencer: names are used again while a copy may come",
    rule: "entry-names-rest-while-copies-may-come",
    change: { term: 2, of: "call", becomes: "true" },
  },
  {
    title: "sequencer: a repeated release tells of a loss",
    rule: "repeated-leave-was-ours",
    change: "never",
  },
  {
    title: "sequencer: waiters of the same process do not see the mark",
    rule: "release-shows-the-mark",
    change: {
      text: "?.kvs",
      becomes: '?.kvs.filter((kv) => !kv.key.toString().endsWith("/done"))',
      why: "The mark is one key of several.",
    },
  },
  {
    title: "sequencer: an entry that is found again ignores the mark",
    rule: "entry-found-again-heeds-the-mark",
    change: "never",
  },
  {
    title: "sequencer: a session is believed without a margin",
    rule: "session-deadline-counts-from-sending",
    change: {
      text: /- \w+\(ttlMs\)/,
      becomes: "",
      why: "The sum is the argument of a function.",
    },
  },
  {
    title: "sequencer: a renewal does not mind how little is left",
    rule: "short-lease-is-renewed-sooner",
    change: { only: 1, of: "min" },
  },
  {
    title: "sequencer: a session keeps a missing entry to itself",
    rule: "missing-entry-is-told-at-once",
    change: "drop",
  },
  {
    title: "sequencer: an entry that a proof did not find is believed",
    rule: "proof-without-the-entry-ends-the-grant",
    change: "drop",
    also: [
      { rule: "unknown-is-not-lost", change: "never" },
      { rule: "missing-entry-is-told-at-once", change: "drop" },
    ],
  },
  {
    title: "sequencer: a process goes on with the lease that it revoked",
    rule: "own-revoke-ends-the-entry",
    change: "never",
  },
];
