import type { Mutant } from "./mutant.js";

/** Among waiters of one process that take turns. */
export const cohort: readonly Mutant[] = [
  {
    title: "the span is used again",
    file: "lease/cohort.js",
    find: "this.#turnsLeft -= 1;",
    replace: "",
  },
  {
    title: "turns share a token",
    file: "lease/cohort.js",
    find: "const token = this.#nextToken++;",
    replace: "const token = this.#nextToken;",
  },
  {
    title: "who gave up gets a turn",
    file: "lease/cohort.js",
    find: "this.#members.remove(place);",
    replace: "",
  },
  {
    title: "leases of unequal grace take turns",
    file: "lease/cohort.js",
    find: "options.graceMs === graceMs",
    replace: "true",
  },
  {
    title: "a loss stops the cohort",
    file: "lease/cohort.js",
    find: `lease?.onLost(reason, detail);
        this.#goOn();`,
    replace: "lease?.onLost(reason, detail);",
  },
  {
    title: "the last turn stops the cohort",
    file: "lease/cohort.js",
    find: `const released = this.#duties.release(last);
        this.#goOn();`,
    replace: "const released = this.#duties.release(last);",
  },
  {
    title: "a span without a limit",
    file: "lease/cohort.js",
    find: "this.#members.size > 1 ? first.options.cohortLimit : 1",
    replace: "this.#members.size > 1 ? 10 * first.options.cohortLimit : 1",
  },
];
