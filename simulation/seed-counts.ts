import type { Family } from "./plan.js";

/** How many seeds each family goes through, in a test run and in the full one. */
export const seedCounts: Readonly<
  Record<Family, { readonly usual: number; readonly full: number }>
> = {
  arbiter: { usual: 2_000, full: 20_000 },
  quorum: { usual: 600, full: 1_500 },
  sequencer: { usual: 2_000, full: 20_000 },
  zookeeper: { usual: 150, full: 3_000 },
};
