/**
 * The parts that the doctors of all stores share. The `doctor.ts` of a store has its facts, the
 * probes that read them, its checks, its failure cases and `examine…`, in this order.
 */
import {
  type Check,
  danger,
  type Fact,
  type Facts,
  type FailureCase,
  type Finding,
  note,
  ok,
  type Severity,
  type Verdict,
  warning,
} from "../contract/examination.js";
import { renewAfterMs } from "../rules/renewal-pace.js";
import type { Clock } from "../time/clock.js";
import { pause } from "../time/pause.js";
import type { Runtime } from "../time/runtime.js";
import { TimeLimitError, within } from "../time/timers.js";

/**
 * How to read each fact. A probe changes nothing; if it throws, the error says why the fact is
 * unknown.
 */
export type Probes<All> = { readonly [Name in keyof All]: () => Promise<All[Name]> | All[Name] };

export interface Reading {
  readonly runtime: Runtime;
  /** Aborted when the answer is no longer wanted. */
  readonly signal: AbortSignal;
  /** When the examination must end, by the clock of the runtime. Default: 8 s from now. */
  readonly endMs?: number;
}

/** The time for one fact, and for all of them: a store must answer within ten seconds. */
const FACT_MS = 2_000;
const ALL_MS = 8_000;

/**
 * Reads the facts one after the other, because one probe's requests would delay those that another
 * one measures. If the first probe gets no answer in time, the others are not asked. Rejects only
 * with the reason of the signal.
 */
export async function readFacts<All extends object>(
  probes: Probes<All>,
  { runtime, signal, endMs: givenMs }: Reading,
): Promise<Facts<All>> {
  const { clock, timers } = runtime;
  let endMs = givenMs ?? endOf(runtime);
  const facts: Record<string, Fact<unknown>> = {};
  for (const [name, probe] of Object.entries<() => unknown>(probes)) {
    signal.throwIfAborted();
    const limitMs = Math.min(FACT_MS, endMs - clock.nowMs());
    if (limitMs <= 0) {
      facts[name] = { unknownBecause: "Not asked: earlier checks took too long." };
      continue;
    }
    try {
      facts[name] = { value: await within(timers, limitMs, (async () => probe())()) };
    } catch (error) {
      const isFirst = Object.keys(facts).length === 0;
      if (isFirst && error instanceof TimeLimitError) endMs = clock.nowMs();
      facts[name] = { unknownBecause: sentence(error) };
    }
  }
  return facts as Facts<All>;
}

/** The end of an examination that begins now. */
export function endOf({ clock }: Runtime): number {
  return clock.nowMs() + ALL_MS;
}

function sentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.endsWith(".") ? text : `${text}.`;
}

/** The findings of all checks that apply, in their order. */
export function findingsOf<All>(
  checks: readonly Check<All>[],
  facts: Facts<All>,
  ttlMs: number,
): Finding[] {
  return checks.flatMap((check) => check.judge(facts, ttlMs) ?? []);
}

/** The value of a fact; undefined if it is unknown. */
export function known<T>(fact: Fact<T>): T | undefined {
  return "value" in fact ? fact.value : undefined;
}

/** One finding from several servers. */
export interface ServerFindings {
  readonly server: string;
  readonly findings: readonly Finding[];
}

const SEVERITIES: readonly Severity[] = ["ok", "skipped", "note", "warning", "danger"];

/** One finding for each check: the worst of all servers, with the servers that have it. */
export function worstFindings(all: readonly ServerFindings[]): Finding[] {
  if (all.length === 1) return [...(all[0]?.findings ?? [])];
  const ids = new Set(all.flatMap(({ findings }) => findings.map(({ id }) => id)));
  return [...ids].flatMap((id) => {
    const found = all.flatMap(({ server, findings }) => {
      return findings.filter((one) => one.id === id).map((finding) => ({ server, finding }));
    });
    const [worst] = found.toSorted((a, b) => rank(b.finding) - rank(a.finding));
    if (!worst) return [];
    const { finding } = worst;
    const where = found.filter((one) => one.finding.severity === finding.severity);
    const servers = where.map(({ server }) => server).join(", ");
    return [{ ...finding, what: `${finding.what} (${servers})` }];
  });
}

function rank({ severity }: Finding): number {
  return SEVERITIES.indexOf(severity);
}

/** One case for each event: the first server's that is unsafe, or that of the first server. */
export function worstFailureCases(all: readonly (readonly FailureCase[])[]): FailureCase[] {
  const [first = []] = all;
  return first.map((one) => {
    const others = all.flatMap((list) => list.filter(({ event }) => event === one.event));
    return others.find(({ isSafe }) => !isSafe) ?? one;
  });
}

/** The failures of a client, which have the same effect in every store. */
export const CLIENT_FAILURES: readonly FailureCase[] = [
  {
    event: "A holder crashes",
    outcome: "Its locks are free after their ttl.",
    isSafe: true,
  },
  {
    event: "A holder is paused for longer than its ttl",
    outcome: "Its deadline has passed when it continues, and it notices.",
    isSafe: true,
  },
];

/** The damage of a store that forgot a lock, or ended it early. */
export function twoHolders(ttlMs: number): string {
  const upTo = seconds(renewAfterMs(ttlMs));
  return `two processes may both think they hold it for up to ${upTo}, until a renewal fails`;
}

/** A time for people: `10 s`, `667 ms`. */
export function seconds(timeMs: number): string {
  if (timeMs < 1_000) return `${Math.ceil(timeMs)} ms`;
  return `${Number((timeMs / 1000).toFixed(1))} s`;
}

/** The time between a request and its answer, over several requests. */
export interface RoundTrip {
  readonly slowestMs: number;
  readonly count: number;
}

const MAX_ROUND_TRIPS = 25;
/** No further request is sent after this. */
const ROUND_TRIPS_MS = 500;

/** `ask` sends the cheapest request that the store answers. */
export async function measureRoundTrip(
  clock: Clock,
  ask: () => Promise<unknown>,
): Promise<RoundTrip> {
  const startMs = clock.nowMs();
  let slowestMs = 0;
  let count = 0;
  for (
    let sentMs = startMs;
    count < MAX_ROUND_TRIPS && sentMs - startMs < ROUND_TRIPS_MS;
    count += 1
  ) {
    await ask();
    const answeredMs = clock.nowMs();
    slowestMs = Math.max(slowestMs, answeredMs - sentMs);
    sentMs = answeredMs;
  }
  return { slowestMs, count };
}

export function judgeRoundTrip({ slowestMs, count }: RoundTrip, ttlMs: number): Verdict {
  const seen = `The slowest of ${count} round trips took ${slowestMs.toFixed(1)} ms`;
  const everyMs = renewAfterMs(ttlMs);
  const why = `A renewal is due every ${Math.round(everyMs)} ms, and its answer within the ttl.`;
  const remedy = "Choose a longer ttlMs, or find out what makes the way to the store slow.";
  if (slowestMs >= everyMs) return warning(`${seen}, more than a third of the ttl.`, why, remedy);
  if (slowestMs >= everyMs / 3) return note(`${seen}, more than a ninth of the ttl.`, why, remedy);
  return ok(`${seen}.`);
}

/** A server's clock compared with ours; the uncertain part is subtracted from both numbers. */
export interface ClockReading {
  /** The part by which the server's clock ran faster or slower; a jump counts as well. */
  readonly driftPart: number;
  /** The distance of the two wall clocks; positive if the server is ahead. */
  readonly skewMs: number;
}

/** Between the two samples of a clock. */
const SAMPLES_APART_MS = 400;
/** The margin of every deadline. */
const MARGIN_PART = 0.01;
const NOTED_SKEW_MS = 5_000;
const WARNED_SKEW_MS = 3_600_000;

interface ClockSample {
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
  const first = await sampleClock(runtime, askUs);
  await pause(runtime.timers, SAMPLES_APART_MS, true);
  const second = await sampleClock(runtime, askUs);
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

async function sampleClock({ clock }: Runtime, askUs: () => Promise<number>): Promise<ClockSample> {
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
