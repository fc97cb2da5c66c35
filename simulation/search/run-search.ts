/** `npm run simulate -- --search`: goes through the small worlds and tells what it found. */
import { isFull } from "../../test/fixtures/depth.js";
import type { Family } from "../plan.js";
import { type Scope, scopes } from "./scopes.js";
import type { Found } from "./search.js";

export interface SearchOptions {
  /** Default: all families. */
  readonly family: Family | undefined;
  /** Words of the titles of the scopes to search. */
  readonly words: string;
  /** How many moves a path may have. Default: as many as in a test run, or in a full one. */
  readonly depth: number | undefined;
  /** The client rule that is left out. */
  readonly without: string | null;
}

/** How many scopes were violated. */
export function runSearch({ family, words, depth, without }: SearchOptions): number {
  let violated = 0;
  for (const scope of scopes) {
    if (family !== undefined && scope.family !== family) continue;
    if (!scope.title.includes(words)) continue;
    const startedUs = process.cpuUsage().user;
    const found = scope.search(depth ?? (isFull ? scope.fullDepth : scope.depth), without);
    const seconds = (process.cpuUsage().user - startedUs) / 1_000_000;
    for (const line of report(scope, found, seconds)) console.log(line);
    if (found.violation) violated += 1;
  }
  return violated;
}

function report(scope: Scope, found: Found, seconds: number): string[] {
  const { states, transitions, depth, isExhausted, violation } = found;
  const end = isExhausted ? "nothing left to search" : "not all of it";
  const counts = `${states} states, ${transitions} transitions, depth ${depth}`;
  const line = `${scope.title}: ${counts}, ${seconds.toFixed(1)} s`;
  if (!violation) return [`${line}, ${end}, nothing wrong`];
  const steps = violation.trace.map((step, index) => `  ${index + 1}. ${step}`);
  return [`${line}, violated: ${violation.message}`, ...steps];
}
