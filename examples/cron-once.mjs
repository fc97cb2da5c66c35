// Three machines start the same nightly report. One runs it, and a failure lets another take over.
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "holdfast";
import { MemorySpace, memoryStore } from "holdfast/memory";

const DAY_MS = 86_400_000;
const space = new MemorySpace();
const machines = ["north", "east", "south"].map((name) => ({
  name,
  locks: new Holdfast(memoryStore({ space }), { meta: { machine: name } }),
}));

let runs = 0;
async function report() {
  runs += 1;
  await sleep(20);
  if (runs === 1) throw new Error("the mail server is down");
  return `sent in run ${runs}`;
}

await Promise.all(
  machines.map(async ({ name, locks }) => {
    try {
      // With waitMs the others wait for the outcome; without it they return at once.
      const result = await locks.once("report:2026-11-15", report, {
        keepMs: DAY_MS,
        waitMs: 5_000,
      });
      if (result.ran) console.log(`${name}: ${result.value}`);
      else console.log(`${name}: ${result.state} by ${result.by?.machine}`);
    } catch (error) {
      console.log(`${name}: failed, ${error.message}`);
    }
  }),
);

await Promise.all(machines.map(({ locks }) => locks.close()));
