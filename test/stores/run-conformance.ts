import { describe, test, vi } from "vitest";
import { type ConformanceCase, conformance, type Harness } from "../../src/conformance/index.js";

/** The number of concurrent cases: most of them wait most of the time. */
const CONCURRENCY = 10;

/** Runs the kit on vitest. The test file of a store gives only its harness. */
export function runConformance(
  harness: Harness,
  { concurrency = CONCURRENCY }: { readonly concurrency?: number } = {},
): void {
  vi.setConfig({ maxConcurrency: concurrency });
  // Each case listens for unhandled rejections.
  process.setMaxListeners(2 * concurrency);
  const cases = conformance(harness);
  describe.concurrent("conformance", () => {
    for (const one of cases) if (!one.alone) register(one);
  });
  describe("conformance, one at a time", () => {
    for (const one of cases) if (one.alone) register(one);
  });
}

function register({ title, skip, run }: ConformanceCase): void {
  test(title, (context) => (skip === null ? run() : context.skip(skip)));
}
