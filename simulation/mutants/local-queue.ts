import type { Mutant } from "./mutant.js";

/** Among waiters of one process that take turns (local queue). */
export const localQueue: readonly Mutant[] = [
  { title: "the span is used again", rule: "span-is-used-up", change: "drop" },
  {
    title: "turns share a token",
    rule: "turn-has-its-own-token",
    change: { text: "++", becomes: "", why: "An operator goes." },
  },
  {
    title: "a waiter that gave up gets a turn",
    rule: "no-turn-after-giving-up",
    change: "drop",
  },
  {
    title: "leases of unequal grace take turns",
    rule: "only-equals-take-turns",
    change: {
      text: /\S+ === graceMs/,
      becomes: "true",
      why: "One of several equal terms is known by its option.",
    },
  },
  {
    title: "a grant that has ended is passed on to the next waiter",
    rule: "no-turn-on-a-grant-that-ended",
    change: {
      becomes: `if (lease && this.#members.size > 0 && this.#turnsLeft > 0) {
                lease.onLost(reason, detail);
                lease.held.isLive = true;
                this.#startTurn(lease.held, lease.startMs);
                return;
            }
            $`,
      why: "The planted code takes a turn where the local queue forgets its grant.",
    },
    also: [{ rule: "ended-grant-is-not-believed", change: "drop" }],
  },
  { title: "a loss stops the local queue", rule: "queue-goes-on-after-a-loss", change: "drop" },
  {
    title: "the last turn stops the local queue",
    rule: "queue-goes-on-after-its-span",
    change: "drop",
  },
  {
    title: "a span without a limit",
    rule: "turns-are-bounded",
    change: { term: 1, of: "?:", becomes: "10 * $" },
  },
];
