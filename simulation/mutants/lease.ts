import type { Mutant } from "./mutant.js";

/** In the life of a lease: renewer, held grant and wait. */
export const lease: readonly Mutant[] = [
  { title: "assertHeld looks at a flag", rule: "held-by-the-clock", change: "never" },
  {
    title: "sleep is not counted",
    rule: "held-by-the-clock",
    change: { text: "exactMs", becomes: "nowMs", why: "The rule is the choice of this clock." },
  },
  {
    title: "a lease goes on beside a newer one of its process",
    rule: "newer-grant-ends-the-older",
    change: "never",
  },
  {
    title: "a grant that ended on its way makes a lease",
    rule: "ended-grant-makes-no-lease",
    change: "never",
  },
  { title: "a loss is not told", rule: "loss-is-told", change: "drop" },
  {
    title: "the lease renewer sleeps with the machine",
    rule: "sleep-of-the-machine-is-noticed",
    change: { only: 1, of: "min" },
  },
  {
    title: "a lease is renewed past its deadline",
    rule: "no-renewal-after-the-deadline",
    change: {
      becomes: `if (held.renews && nowMs >= held.deadlineMs) {
                held.dueMs = held.renewMs = nowMs + held.ttlMs / 6;
                this.#heldGrants.update(held);
                batch.push(held);
                continue;
            }
            $`,
      why: "Without the statement the renewer would look at the grant forever, so it has to go on.",
    },
    also: [{ rule: "no-renewal-is-sent-late", change: "never" }],
  },
  {
    title: "a failed cleanup is an unhandled rejection",
    rule: "host-sees-no-rejection",
    change: { text: "then(end, end)", becomes: "finally(end)", why: "One handler of two goes." },
  },
  {
    title: "no answer is a loss",
    rule: "unknown-is-not-lost",
    change: {
      becomes: 'if (renewal.type !== "renewed") return this.#end(held, REPLACED);',
      why: "A renewal without an answer has no reason of a loss.",
    },
  },
  {
    title: "renewals come too late",
    rule: "renewals-come-in-time",
    change: { term: 1, of: "?:", becomes: "$ + 60_000" },
  },
  {
    title: "the grace is ignored",
    rule: "warning-before-the-deadline",
    change: { only: 1, of: "+" },
  },
  {
    title: "maxHoldMs is ignored",
    rule: "hold-ends-at-its-maximum",
    change: { only: 1, of: "min" },
  },
  {
    title: "a lease ends before its maximum",
    rule: "hold-ends-at-its-maximum",
    change: { term: 2, of: "min", becomes: "$ - 100" },
  },
  {
    title: "the time for which a process was frozen counts as silence of the store",
    rule: "frozen-time-is-not-silence",
    change: { only: 1, of: "&&" },
  },
  { title: "the wait has no end", rule: "wait-ends-in-time", change: "drop" },
  {
    title: "a settled wait keeps its timer",
    rule: "settled-wait-leaves-no-timer",
    change: "drop",
  },
];
