import { type Mutant, NOW } from "./mutant.js";

/** In the arbiter family: grants that a client believes wrongly, forgets or leaves behind. */
export const arbiter: readonly Mutant[] = [
  {
    title: "a deadline counts from the reply",
    rule: "deadline-counts-from-sending",
    change: { term: 1, of: "call", becomes: NOW },
  },
  {
    title: "a deadline counts the whole ttl after a repeat",
    rule: "deadline-counts-from-sending",
    change: { term: 2, of: "call", becomes: "Number.POSITIVE_INFINITY" },
  },
  {
    title: "the deadline of a renewal counts from its reply",
    rule: "renewal-counts-from-sending",
    change: { term: 1, of: "call", becomes: NOW },
  },
  {
    title: "a late grant is kept",
    rule: "late-grant-is-given-back",
    change: "never",
    also: [{ rule: "ended-grant-makes-no-lease", change: "never" }],
  },
  { title: "nothing is withdrawn", rule: "every-end-withdraws", change: "never" },
  {
    title: "a request under way is not withdrawn",
    rule: "every-end-withdraws",
    change: { only: 1, of: "||" },
  },
  {
    title: "a request under way leaves no tombstone",
    rule: "tombstone-outlives-copies",
    change: { only: 2, of: "?:" },
  },
  {
    title: "a changed connection goes unnoticed",
    rule: "resent-request-may-have-copies",
    change: "never",
  },
  {
    title: "a late push is believed",
    rule: "handoff-is-believed-if-fresh",
    change: "never",
  },
  {
    title: "an offer is believed for longer than it lasts",
    rule: "offer-is-believed-until-it-lapses",
    change: { term: 2, of: "call", becomes: "$ + 5_000" },
  },
  {
    title: "an offer too short for the grace is believed",
    rule: "offer-outlasts-the-grace",
    change: { only: 1, of: "&&" },
  },
  {
    title: "a grant that the store calls gone goes on",
    rule: "answered-gone-ends-the-grant",
    change: "drop",
    also: [{ rule: "unknown-is-not-lost", change: "never" }],
  },
  {
    title: "a push of a revocation is ignored",
    rule: "pushed-revoke-ends-the-grant",
    change: "never",
  },
  {
    title: "a process goes on with the lease that it revoked",
    rule: "own-revoke-ends-the-grant",
    change: "never",
  },
  {
    title: "the answer to a confirm is ignored once the grant is believed",
    rule: "confirm-judges-the-grant",
    change: "never",
  },
  {
    title: "a confirm waits for its batch",
    rule: "confirm-is-sent-at-once",
    change: { text: "postNow", becomes: "post", why: "The rule is the choice of this method." },
  },
  {
    title: "a push that is not believed is dropped",
    rule: "unproven-handoff-waits-for-its-confirm",
    change: "never",
  },
  {
    title: "a late push takes the lock from its holder",
    rule: "late-push-spares-the-holder",
    change: "always",
  },
  {
    title: "one release overtakes another",
    rule: "released-grant-is-known-until-answered",
    change: { value: "$?.isReleasing ? undefined : $" },
  },
  {
    title: "lost places are not asked for again",
    rule: "lost-places-are-asked-for-again",
    change: "never",
  },
  {
    title: "a store that answers is silent",
    rule: "answer-ends-the-silence",
    change: "drop",
  },
  {
    title: "a waiter does not ask when the holder is due",
    rule: "waiter-asks-when-the-holder-is-due",
    change: { only: 2, of: "?:" },
  },
  {
    title: "a failed heartbeat is the last",
    rule: "failed-heartbeat-is-repeated",
    change: "drop",
    also: [{ rule: "unanswered-heartbeat-is-repeated", change: "drop" }],
  },
  {
    title: "a release tells of a loss after a repeat",
    rule: "repeated-release-was-ours",
    change: { term: 2, of: "||", becomes: "false" },
  },
];
