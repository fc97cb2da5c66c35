/**
 * The demonstration: what goes wrong without a lock, then the same with one while its holders are
 * killed and stopped, and a verdict by numbers.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { connect } from "../../connect.js";
import { ExitCode } from "../exit-code.js";
import { Signals } from "../signals.js";
import { Act } from "./act.js";
import { TTL_MS } from "./protocol.js";
import { Screen } from "./screen.js";
import { verdict } from "./verdict.js";

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
    return await play(store, screen, signals.interrupted);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function play(store: string, screen: Screen, interrupted: AbortSignal): Promise<number> {
  screen.say(`${WORKERS} processes add 1 to one counter: read, work, write. First without a lock.`);
  const bare = new Act(store, screen, null);
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
  const act = new Act(store, screen, locks);
  try {
    screen.say(`Now under a lock with a ttl of ${TTL_MS / 1_000} s.`);
    act.start(WORKERS);
    await act.until(() => act.grants > WORKERS, interrupted);
    await act.pass(CALM_MS, interrupted);
    const killMs = await act.killHolder(interrupted);
    await act.pass(CALM_MS, interrupted);
    const stopMs = await act.stopHolder(STOPPED_MS, interrupted);
    await act.until(() => act.refused.length > 0, interrupted);
    await act.pass(CALM_MS, interrupted);
    await act.end();
    const { text, isGood } = verdict(act, bare.counter, { killMs, stopMs });
    screen.end(text);
    return isGood ? ExitCode.ok : ExitCode.internal;
  } finally {
    await act.end();
  }
}
