import type { Family } from "./plan.js";

/** How many seeds each family goes through: in `npm test`, with `--all`, and in the full run. */
export const seedCounts: Readonly<
  Record<Family, { readonly quick: number; readonly usual: number; readonly full: number }>
> = {
  arbiter: { quick: 1_000, usual: 2_000, full: 20_000 },
  quorum: { quick: 100, usual: 600, full: 1_500 },
  sequencer: { quick: 500, usual: 2_000, full: 20_000 },
  zookeeper: { quick: 50, usual: 150, full: 3_000 },
};
