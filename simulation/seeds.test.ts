import { describe, expect, it } from "vitest";
import { simulate } from "./built-simulation.js";
import { seedCounts } from "./seed-counts.js";

const { arbiter: SEEDS, ...FAMILIES } = Object.fromEntries(
  Object.entries(seedCounts).map(([family, { usual, full }]) => {
    return [family, process.env.HOLDFAST_FULL ? full : usual];
  }),
) as Record<keyof typeof seedCounts, number>;
const PATIENCE_MS = 30 * 60_000;

describe("all seeds", () => {
  // Two processes, because there are two cores; a failure prints how to see it again.
  it.concurrent.each([0, SEEDS / 2])("pass, from %d on", { timeout: PATIENCE_MS }, async (seed) => {
    const { code, output } = await simulate("--seed", `${seed}`, "--count", `${SEEDS / 2}`);
    expect(code, output).toBe(0);
  });
});

describe.each(Object.entries(FAMILIES))("all seeds of a %s", (family, seeds) => {
  it.concurrent.each([0, seeds / 2])("pass, from %d on", { timeout: PATIENCE_MS }, async (seed) => {
    const args = [`--${family}`, "--seed", `${seed}`, "--count", `${seeds / 2}`];
    const { code, output } = await simulate(...args);
    expect(code, output).toBe(0);
  });
});

describe.each([[[]], [["--quorum"]], [["--sequencer"]], [["--zookeeper"]]])(
  "a history %j",
  (plans) => {
    it("is the same for the same seed, and another for another", async () => {
      const run = (): Promise<{ output: string }> =>
        simulate("--seed", "7", "--count", "30", "--hash", ...plans);
      const [first, second] = await Promise.all([run(), run()]);
      const hashes = first.output.split("\n").slice(0, 30);
      expect(second.output.split("\n").slice(0, 30)).toEqual(hashes);
      expect(new Set(hashes.map((line) => line.split(" ")[1])).size).toBe(30);
    });
  },
);
