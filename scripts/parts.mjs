// The parts of the test run that are vitest projects, in their order, and the files of each.

/** @type {Record<string, readonly string[]>} */
export const parts = {
  unit: ["src/**/*.test.ts", "bench/*.test.ts", "test/tidy.test.ts"],
  package: ["test/package/**/*.test.ts"],
  stores: ["test/servers/**/*.test.ts", "test/faults/**/*.test.ts", "test/stores/**/*.test.ts"],
  cli: ["test/cli/**/*.test.ts"],
  storms: ["test/storms/**/*.test.ts"],
  simulation: ["simulation/**/*.test.ts"],
};
