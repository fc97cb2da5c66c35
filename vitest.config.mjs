import { delimiter } from "node:path";
import { defineConfig } from "vitest/config";
import { embed } from "./scripts/embed.mjs";
import { selectedPrograms } from "./scripts/newer-servers.mjs";
import { projects } from "./scripts/parts.mjs";
import { VitestEvents } from "./scripts/vitest-events.mjs";

const MINUTE_MS = 60_000;

// All files share the machine: few at a time, and patience.
const heavy = {
  maxWorkers: 2,
  testTimeout: 2 * MINUTE_MS,
  hookTimeout: 3 * MINUTE_MS,
  expect: { poll: { timeout: MINUTE_MS } },
};
const alone = { ...heavy, maxWorkers: 1 };

const settings = {
  unit: heavy,
  package: alone,
  // Most of their time is waiting: for leases to end and for servers to come back.
  stores: { ...heavy, maxWorkers: 4 },
  cli: heavy,
  browser: alone,
  storms: { ...alone, testTimeout: 10 * MINUTE_MS },
  // It computes, beside parts that go first.
  simulation: { ...heavy, testTimeout: 30 * MINUTE_MS },
  lab: { ...alone, testTimeout: 40 * MINUTE_MS },
};

// Tests start the first redis-server and etcd on the PATH.
const env = { PATH: [...selectedPrograms(), process.env.PATH].join(delimiter) };

await embed();

export default defineConfig({
  plugins: [
    {
      name: "generated modules",
      // With --watch, an edit of their sources changes them, which runs the tests again.
      configureServer: ({ watcher }) => {
        watcher.on("change", (file) => {
          if (/\.(lua|sql)$|[/\\]dashboard[/\\]page[/\\]/.test(file)) void embed();
        });
      },
    },
  ],
  test: {
    // The test run hears what happens; a person reads the usual report.
    reporters: process.send ? [new VitestEvents()] : ["default"],
    projects: Object.entries(settings).map(([name, setting], groupOrder) => ({
      test: {
        name,
        include: [...(projects[name] ?? [])],
        sequence: { groupOrder },
        setupFiles: ["scripts/vitest-file.mjs"],
        env,
        ...setting,
      },
    })),
  },
});
