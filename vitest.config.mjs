import { writeFileSync } from "node:fs";
import { delimiter } from "node:path";
import { defineConfig } from "vitest/config";
import { selectedPrograms } from "./scripts/newer-servers.mjs";
import { parts } from "./scripts/parts.mjs";

const MINUTE_MS = 60_000;

// Servers, processes and storms share the machine: few files at a time, and patience.
const heavy = {
  maxWorkers: 2,
  testTimeout: 2 * MINUTE_MS,
  hookTimeout: 3 * MINUTE_MS,
  expect: { poll: { timeout: MINUTE_MS / 3 } },
};
const alone = { ...heavy, maxWorkers: 1 };

const settings = {
  unit: { maxWorkers: 2, testTimeout: 2 * MINUTE_MS },
  package: alone,
  // Most of their time is waiting: for leases to end and for servers to come back.
  stores: { ...heavy, maxWorkers: 4 },
  cli: heavy,
  browser: alone,
  storms: { ...alone, testTimeout: 10 * MINUTE_MS },
  // It computes, beside parts that go first.
  simulation: { ...heavy, testTimeout: 10 * MINUTE_MS },
  lab: { ...alone, testTimeout: 40 * MINUTE_MS },
};

// Tests start the first redis-server and etcd on the PATH.
const env = { PATH: [...selectedPrograms(), process.env.PATH].join(delimiter) };

// For the test run: the results of the tests, and the number of errors that belong to no test.
const report = process.env.HOLDFAST_REPORT;
/** @type {import("vitest/node").Reporter} */
const errorCount = {
  onTestRunEnd: (_modules, errors) => writeFileSync(`${report}.errors`, `${errors.length}`),
};

export default defineConfig({
  test: {
    reporters: report ? ["default", ["json", { outputFile: report }], errorCount] : ["default"],
    projects: Object.entries(settings).map(([name, setting], groupOrder) => ({
      test: { name, include: [...(parts[name] ?? [])], sequence: { groupOrder }, env, ...setting },
    })),
  },
});
