import type { Mutant } from "./mutant.js";

/** In the rules that all stores share. */
export const rules: readonly Mutant[] = [
  {
    title: "no margin",
    file: "rules/margin.js",
    find: "return lengthMs / 100 + 2;",
    replace: "return 0;",
  },
  {
    title: "token ignores the last one",
    file: "rules/token.js",
    find: "return Math.max(wallUs, lastToken + 1);",
    replace: "return wallUs;",
  },
  {
    title: "token ignores the clock",
    file: "rules/token.js",
    find: "return Math.max(wallUs, lastToken + 1);",
    replace: "return lastToken + 1;",
  },
  {
    title: "the requester's limit only",
    file: "rules/fits.js",
    find: "<= Math.min(held.limit, request.limit)",
    replace: "<= request.limit",
  },
  {
    title: "the holders' limit only",
    file: "rules/fits.js",
    find: "<= Math.min(held.limit, request.limit)",
    replace: "<= held.limit",
  },
  {
    title: "a writer joins readers",
    file: "rules/fits.js",
    find: 'if (held.exclusive || request.mode === "exclusive")',
    replace: "if (held.exclusive)",
  },
];
