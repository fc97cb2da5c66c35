import type { Mutant } from "./mutant.js";

/** In the ledger: mistakes of the store itself. */
export const ledger: readonly Mutant[] = [
  {
    title: "an acquire has no notAfter",
    rule: "late-acquire-is-refused",
    change: "never",
  },
  {
    title: "a release leaves no tombstone",
    rule: "release-leaves-a-tombstone",
    change: "never",
  },
  {
    title: "tombstones end too early",
    rule: "tombstones-end",
    change: { term: 1, of: "call", becomes: "$ + 10_000_000" },
  },
  { title: "tombstones stay for ever", rule: "tombstones-end", change: "drop" },
  {
    title: "a renewal shortens",
    rule: "renewal-never-shortens",
    change: { only: 2, of: "max" },
  },
  {
    title: "a renewal makes a lost grant again",
    rule: "renewal-never-revives",
    change: {
      becomes: `if (!holder) {
        const { owner, ttlUs } = command;
        const all = { mode: "exclusive", weight: 1, limit: 1, span: 1, meta: "{}", client: "" };
        const times = { expiryUs: at.us + ttlUs, grantedUs: at.us, confirmed: true };
        state.putHolder({ ...all, ...times, owner, ttlUs, token: command.seenToken });
        return renewed(state, state.holder(owner), at);
    }`,
      why: "The rule is that this code does not exist.",
    },
  },
  {
    title: "a confirm does not extend the offer",
    rule: "confirm-gives-the-full-lease",
    change: "drop",
  },
  {
    title: "a lapsed offer makes no client unresponsive",
    rule: "lapsed-offer-makes-client-unresponsive",
    change: "never",
  },
  {
    title: "a lapse that is noticed late makes a client unresponsive that spoke",
    rule: "lapsed-offer-makes-client-unresponsive",
    change: { only: 1, of: "&&" },
  },
  {
    title: "an unresponsive client stays so",
    rule: "any-command-makes-client-responsive",
    change: "drop",
  },
  {
    title: "silent clients keep their places",
    rule: "silent-clients-lose-their-places",
    change: "drop",
  },
  {
    title: "newcomers overtake the queue",
    rule: "newcomers-queue-behind",
    change: { only: 2, of: "&&" },
  },
  {
    title: "a waiter that asks again loses its place",
    rule: "repeated-request-keeps-the-place",
    change: {
      becomes: "if (state.waiter(owner)) state.dropWaiter(state.waiter(owner));",
      why: "The planted code goes on to the statement that puts a waiter at the end.",
    },
  },
  { title: "a waiter is not removed on abort", rule: "release-ends-the-wait", change: "never" },
  {
    title: "a release does not serve the queue",
    rule: "release-serves-the-queue",
    change: "never",
  },
  {
    title: "a handoff forgets its span",
    rule: "handoff-uses-up-its-span",
    change: { only: 1, of: "+" },
  },
  {
    title: "the tokens that clients have seen are ignored",
    rule: "seen-tokens-count",
    change: "never",
  },
  {
    title: "a dead client is granted the lock",
    rule: "unreachable-waiters-are-passed-over",
    change: "drop",
  },
  {
    title: "a finished once leaves no mark",
    rule: "finished-once-leaves-a-mark",
    change: "never",
  },
  {
    title: "a mark does not end the waiting",
    rule: "mark-ends-every-wait",
    change: { value: "undefined" },
  },
  { title: "the queue is a stack", rule: "first-come-first-served", change: "swap" },
];
