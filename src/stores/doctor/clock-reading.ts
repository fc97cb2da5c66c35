import { danger, note, ok, type Verdict, warning } from "../../contract/checks.js";
import { pause } from "../../time/pause.js";
import type { Runtime } from "../../time/runtime.js";

/** The clock of a server beside that of this process; uncertain time is taken off both numbers. */
export interface ClockReading {
  /** By which part the server's clock ran faster or slower; a jump counts as well. */
  readonly driftPart: number;
  /** How far the two wall clocks are apart: above 0 where the server is ahead. */
  readonly skewMs: number;
}

/** Between the two samples of a clock. */
const APART_MS = 400;
/** The margin of every deadline. */
const MARGIN_PART = 0.01;
const NOTED_SKEW_MS = 5_000;
const WARNED_SKEW_MS = 3_600_000;

interface Sample {
  readonly localMs: number;
  readonly serverMs: number;
  readonly aheadMs: number;
  readonly roundTripMs: number;
}

/** `askUs` asks the server for its wall clock in microseconds. */
export async function readClock(
  runtime: Runtime,
  askUs: () => Promise<number>,
): Promise<ClockReading> {
  const first = await sample(runtime, askUs);
  await pause(runtime.timers, APART_MS, true);
  const second = await sample(runtime, askUs);
  const passedMs = second.localMs - first.localMs;
  const differenceMs = Math.abs(second.serverMs - first.serverMs - passedMs);
  // Each sample may be wrong by half of its round trip, in either direction.
  const certainMs = differenceMs - (first.roundTripMs + second.roundTripMs) / 2;
  const skewMs = Math.max(0, Math.abs(second.aheadMs) - second.roundTripMs / 2);
  return {
    driftPart: Math.max(0, certainMs) / passedMs,
    skewMs: Math.sign(second.aheadMs) * skewMs,
  };
}

async function sample({ clock }: Runtime, askUs: () => Promise<number>): Promise<Sample> {
  const sentMs = clock.nowMs();
  const serverMs = (await askUs()) / 1000;
  const wallMs = clock.wallUs() / 1000;
  const roundTripMs = clock.nowMs() - sentMs;
  const aheadMs = serverMs - (wallMs - roundTripMs / 2);
  return { localMs: sentMs + roundTripMs / 2, serverMs, aheadMs, roundTripMs };
}

export function judgeDrift({ driftPart }: ClockReading): Verdict {
  const percent = `${(driftPart * 100).toFixed(1)} %`;
  if (driftPart <= MARGIN_PART) return ok("The clock of the server runs as fast as ours.");
  return danger(
    `The clock of the server runs ${percent} off ours, or it jumped just now.`,
    "A deadline has a margin of 1 %: a server that counts faster grants a lock that is still held.",
    "Let NTP slew the clock instead of stepping it, and look at the host of a virtual machine.",
  );
}

export function judgeSkew({ skewMs }: ClockReading): Verdict {
  const apartMs = Math.abs(skewMs);
  if (apartMs < NOTED_SKEW_MS) return ok("The server and this process agree on the time.");
  const side = skewMs > 0 ? "ahead of" : "behind";
  const seen = `The clock of the server is ${Math.round(apartMs / 1000)} s ${side} ours.`;
  const why = "Tokens begin at the clock of the server: a clock that is set right later is a jump.";
  const remedy = "Run NTP on the server and here.";
  return apartMs < WARNED_SKEW_MS ? note(seen, why, remedy) : warning(seen, why, remedy);
}
