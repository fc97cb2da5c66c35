// A replica with a clock of its own: `cron-replica.mjs STORE_URL NAME CLOCK SCHEDULER WORK_MS`.
// CLOCK says how many milliseconds it is ahead, or the time that it shows when the schedule starts.
// It prints a line for each run that begins, each run that ends and each run that it skips.
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "holdfast";
import { cronCoordinator, onceEach } from "holdfast/cron";

const [, , url = "", replica = "", clock = "0", scheduler = "", workMs = "0"] = process.argv;

// The wall clock of this process differs, as that of another machine does.
const SystemDate = Date;
let aheadMs = Number(clock);
const nowMs = () => SystemDate.now() + (aheadMs || 0);
globalThis.Date = /** @type {DateConstructor} */ (
  class extends SystemDate {
    /** @param {[] | [number]} given */
    constructor(...given) {
      super(given.length === 0 ? nowMs() : given[0]);
    }
    static now() {
      return nowMs();
    }
  }
);

const say = (/** @type {string} */ text) => console.log(`${replica} ${text}`);
const locks = await connect(url, { meta: { label: replica } });
const options = {
  ttlMs: Number(workMs) > 0 ? 3_000 : 30_000,
  // Replicas take over from one that dies.
  waitMs: Number(workMs) > 0 ? 30_000 : 0,
  onSkip: (/** @type {import("holdfast/cron").SkippedRun} */ { name, state, by }) =>
    say(`${state} by ${by?.label}: ${name}`),
};

// A busy machine may be late by seconds, and is still within the time of a run that is taken over.
const pattern = Number(workMs) > 0 ? "*/20 * * * * *" : "* * * * * *";

async function work(/** @type {string} */ time) {
  say(`begins: job:${time}`);
  await sleep(Number(workMs));
  say(`ends: job:${time}`);
}

const { Cron } = await import("croner");
const { default: cron } = await import("node-cron");
if (Number.isNaN(aheadMs)) aheadMs = SystemDate.parse(clock) - SystemDate.now();
if (scheduler === "croner") {
  const run = onceEach(locks, "job", (_, time) => work(time.toISOString()), options);
  new Cron(pattern, { protect: true }, run);
} else {
  cron.schedule(pattern, ({ date }) => work(date.toISOString()), {
    name: "job",
    distributed: true,
    noOverlap: true,
    missedExecutionTolerance: Number(workMs) > 0 ? 15_000 : 1_000,
    logger: { info() {}, warn() {}, debug() {}, error: console.error },
    runCoordinator: cronCoordinator(locks, options),
  });
}
say("ready");
