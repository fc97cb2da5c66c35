import type { Mutant } from "./mutant.js";

/** In the rules that all stores share. */
export const rules: readonly Mutant[] = [
  { title: "no margin", rule: "margin-for-drift", change: { value: "0" } },
  {
    title: "a deadline without its margin",
    rule: "deadline-before-expiry",
    change: { term: 3, of: "+", becomes: "0" },
  },
  {
    title: "a token ignores the last one",
    rule: "tokens-only-rise",
    change: { only: 1, of: "max" },
  },
  { title: "a token ignores the clock", rule: "tokens-only-rise", change: { only: 2, of: "max" } },
  {
    title: "only the limit of the request counts",
    rule: "least-limit-counts",
    change: { only: 2, of: "min" },
  },
  {
    title: "only the limit of the holders counts",
    rule: "least-limit-counts",
    change: { only: 1, of: "min" },
  },
  { title: "a writer joins readers", rule: "exclusive-holds-alone", change: { only: 1, of: "||" } },
];
