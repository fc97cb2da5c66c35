/**
 * The demonstration: processes lose updates without a lock, then lose none with a lock while its
 * holders are killed and stopped. A verdict says so in numbers.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { connect } from "../../api/connect.js";
import { formatDuration } from "../duration.js";
import { ExitCode } from "../exit-code.js";
import { Signals } from "../signals.js";
import { TTL_MS } from "./protocol.js";
import { Screen } from "./screen.js";
import { type Counter, Trial } from "./trial.js";

const WORKERS = 4;
const UNLOCKED_MS = 1_500;
const CALM_MS = 1_500;
const STOPPED_MS = TTL_MS + 1_000;

export async function runDemo(): Promise<number> {
  using signals = new Signals();
  const folder = mkdtempSync(join(tmpdir(), "holdfast-demo-"));
  const store = pathToFileURL(join(folder, "locks.db")).href;
  const screen = new Screen();
  try {
    return await demonstrate(store, screen, signals.interrupted);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function demonstrate(
  store: string,
  screen: Screen,
  interrupted: AbortSignal,
): Promise<number> {
  screen.say(`${WORKERS} processes add 1 to one counter: read, work, write. First without a lock.`);
  const bare = new Trial(store, screen, null);
  try {
    bare.start(WORKERS);
    await bare.until(() => bare.counter.writes > 0, interrupted);
    await bare.pass(UNLOCKED_MS, interrupted);
  } finally {
    await bare.end();
  }
  const { value, writes } = bare.counter;
  screen.say(`Without a lock: ${writes} increments, and the counter says ${value}.`);

  await using locks = await connect(store);
  const locked = new Trial(store, screen, locks);
  try {
    screen.say(`Now under a lock with a ttl of ${TTL_MS / 1_000} s.`);
    locked.start(WORKERS);
    await locked.until(() => locked.grants > WORKERS, interrupted);
    await locked.pass(CALM_MS, interrupted);
    const killMs = await locked.killHolder(interrupted);
    await locked.pass(CALM_MS, interrupted);
    const stopMs = await locked.stopHolder(STOPPED_MS, interrupted);
    await locked.until(() => locked.refused.length > 0, interrupted);
    await locked.pass(CALM_MS, interrupted);
    await locked.end();
    const { text, isGood } = verdict(locked, bare.counter, { killMs, stopMs });
    screen.end(text);
    return isGood ? ExitCode.ok : ExitCode.internal;
  } finally {
    await locked.end();
  }
}

/** How much later than the ttl of a dead holder the next grant may come, on a busy machine. */
const SLACK_MS = 1_500;

/** Each promise with the number that shows whether it was kept. */
export function verdict(
  trial: Trial,
  bare: Counter,
  { killMs, stopMs }: { killMs: number; stopMs: number },
): { text: string; isGood: boolean } {
  const { counter, refused, grants, disorder } = trial;
  const latestMs = TTL_MS + SLACK_MS;
  const [stale] = refused;
  const lost = bare.writes - bare.value;
  const took = `${formatDuration(killMs)} after SIGKILL, ${formatDuration(stopMs)} after SIGSTOP`;
  const promises = [
    {
      isKept: counter.value === counter.writes && counter.writes > 0,
      text:
        `counter exact: ${counter.value} after ${counter.writes} increments ` +
        `(without a lock ${lost} of ${bare.writes} were lost)`,
    },
    {
      isKept: disorder === 0 && grants > 0,
      text: `tokens risen: ${grants} grants, each with a higher token than all before`,
    },
    {
      isKept: stale !== undefined && stale.token < stale.by,
      text: "stale write refused by its token after the holder was stopped and continued",
    },
    {
      isKept: killMs <= latestMs && stopMs <= latestMs,
      text: `takeover ${took} (ttl ${formatDuration(TTL_MS)})`,
    },
  ];
  const isGood = promises.every(({ isKept }) => isKept);
  const lines = promises.map(({ isKept, text }) => `  ${isKept ? "kept  " : "BROKEN"}  ${text}`);
  const next = ["", "Try it:  npm start -- run backup -- sleep 5", "         npm start -- --help"];
  const title = isGood ? "Verdict: the lock held." : "Verdict: the lock did NOT hold.";
  return { text: [title, ...lines, ...next].join("\n"), isGood };
}
