import { describe, expect, it } from "vitest";
import { isFull, isQuick } from "../test/fixtures/depth.js";
import { simulate } from "./built-simulation.js";
import { seedCounts } from "./seed-counts.js";

const FAMILIES = Object.entries(seedCounts).map(([family, { quick, usual, full }]) => {
  return [family, isFull ? full : isQuick ? quick : usual] as const;
});
const PATIENCE_MS = 30 * 60_000;

describe.each(FAMILIES)("all seeds of the family %s", (family, seeds) => {
  const patience = { timeout: PATIENCE_MS };
  // Two processes, because there are two cores; a failure prints how to see it again.
  it.concurrent.for([0, seeds / 2])("pass, from %d on", patience, async (seed, context) => {
    const kind = family === "arbiter" ? [] : [`--${family}`];
    const args = [...kind, "--seed", `${seed}`, "--count", `${seeds / 2}`];
    const { code, output } = await simulate(...args);
    context.expect(code, output).toBe(0);
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
